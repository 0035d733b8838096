"""Artifacts as rows of a store, the terms that find them, and events as changes to rows."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import force_setattr

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.logic.matching import ALWAYS, opening
from turnloom.board.spec import (
    Artifact,
    Consumption,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    Tenant,
    Visibility,
    is_shared,
)
from turnloom.board.spec.queries import ArtifactContent, ArtifactRow, ArtifactTraits
from turnloom.errors import ArtifactExists, InvalidArtifact
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import Json
from turnloom.log.spec import Event

# A kind of fact, and which one.
Key = tuple[str, str]
# A kind of scope, which one, and of which tenant.
Scope = tuple[str, str, str]

EVERYTHING: Key = ("all", "")
# What every tenant looks in.
SHARED: Scope = ("shared", "", "")


@lru_cache(maxsize=65_536)
def term(scope: Scope, fact: Key) -> int:
    """The number of a fact in a scope, in 64 bits with a sign."""
    text = "\0".join((*scope, *fact)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def tagged(type: str, tag: str) -> Key:
    """The fact that something of a type has a tag."""
    return ("tagged", f"{type}\0{tag}")


def typed(type: str) -> tuple[Key, Key]:
    """The facts one of which says that something is of a type: without indexed fields, or with."""
    return ("type", type), ("indexed", type)


def valued(type: str, field: str, values: Iterable[Json]) -> tuple[Key, ...] | None:
    """The facts one of which has everything of a type that has one of these values in a field;
    none if a value is not simple."""
    written = [_simple(value) for value in values]
    if None in written:
        return None
    found = [_field(type, field, each) for each in written if each is not None]
    return (("type", type), ("unindexed", f"{type}\0{field}"), *found)


def terms_of(tenant: str, artifact: Artifact, audience: object) -> tuple[int, ...]:
    """What an artifact of a tenant is found by."""
    facts = _facts(artifact)
    return tuple([term(scope, fact) for scope in _scopes(tenant, audience) for fact in facts])


def terms_of_run(tenant: str, run: str) -> tuple[int, ...]:
    """What all artifacts of a run are found by, among others that have the same number."""
    scopes: tuple[Scope, ...] = (("public", "", tenant), ("restricted", "", tenant), SHARED)
    return tuple(term(scope, ("run", run)) for scope in scopes)


def scopes_of(reader: Reader) -> tuple[Scope, ...]:
    """Where a reader looks; an artifact that it may see is in exactly one of these."""
    tenant = reader.tenant
    public: Scope = ("public", "", tenant)
    if reader.role == "developer":
        return (public, ("restricted", "", tenant), SHARED)
    agent: list[Scope] = [("agent", reader.agent, tenant)] if reader.agent else []
    labels: list[Scope] = [("label", label, tenant) for label in sorted(reader.labels)]
    return (public, *agent, ("tenant", tenant, tenant), *labels, SHARED)


def _scopes(tenant: str, audience: object) -> Sequence[Scope]:
    match audience:
        case Shared():
            return (SHARED,)
        case Public():
            return (("public", "", tenant),)
        case Private(agents=agents):
            named: list[Scope] = [("agent", agent, tenant) for agent in agents]
        case Labelled(labels=labels):
            named = [("label", min(labels), tenant)]  # a reader with all of them has this one
        case Tenant(tenant_id=name):
            named = [("tenant", name, tenant)]
        case _:
            named = []
    return (*named, ("restricted", "", tenant))  # where developers look


def _facts(artifact: Artifact) -> list[Key]:
    facts = [EVERYTHING, ("producer", artifact.produced_by), *_typed(artifact)]
    if artifact.correlation_id is not None:
        facts.append(("correlation", artifact.correlation_id))
    if artifact.run is not None:
        facts.append(("run", artifact.run))
    if artifact.partition is not None:
        facts.append(("partition", artifact.partition))
    for tag in artifact.tags:
        facts += (("tag", tag), tagged(artifact.type, tag))
    return facts


def _typed(artifact: Artifact) -> Iterator[Key]:
    plain, indexed = typed(artifact.type)
    if not artifact.indexed:
        yield plain
        return
    yield indexed
    for field, value in artifact.payload.items():
        written = _simple(value)
        if written is not None and field in artifact.indexed:
            yield _field(artifact.type, field, written)
        elif written is not None:
            yield ("unindexed", f"{artifact.type}\0{field}")


def _field(type: str, field: str, written: str) -> Key:
    return ("field", f"{type}\0{field}\0{written}")


def _simple(value: Json) -> str | None:
    """A text that is the same for JSON values that are equal, as `matching` compares them; none for
    arrays and objects."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return f"text {blake2b(text, digest_size=16).hexdigest()}"
    return None


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


_encode = msgspec.json.Encoder(order="deterministic").encode
_encode_plainly = msgspec.json.Encoder().encode
_decode_visibility = msgspec.json.Decoder[Visibility](Visibility).decode
_decode_content = msgspec.json.Decoder(ArtifactContent).decode
_decode_artifact = msgspec.json.Decoder(Artifact).decode
_decode_traits = msgspec.json.Decoder(ArtifactTraits).decode
# What decoding raises on a text that holds something else.
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class _Counted(msgspec.Struct):
    """The traits in the data of a row; the rest is skipped."""

    type: str
    produced_by: str
    tags: tuple[str, ...]


_decode_counted = msgspec.json.Decoder(_Counted).decode


def microseconds(at: datetime) -> int:
    """An instant as a number that every store can order."""
    return (at - EPOCH) // TICK


def instant_of(number: int) -> datetime:
    """The instant that a number stands for."""
    return EPOCH + number * TICK


def rows_of(tenant: str, artifacts: Iterable[Artifact]) -> list[ArtifactRow]:
    """The rows of a tenant's artifacts in their order, each once.

    Raises:
        InvalidArtifact: one would not come back as it is.
        ArtifactExists: two of them have one id and other content.
    """
    rows: dict[str, ArtifactRow] = {}
    for artifact in artifacts:
        row = _row(tenant, artifact)
        if rows.setdefault(row.id, row).digest != row.digest:
            raise ArtifactExists(row.id)
    return list(rows.values())


@lru_cache(maxsize=1024)
def write_visibility(visibility: Visibility) -> str:
    """A visibility as text: the same for the same."""
    return _encode(visibility).decode()


@lru_cache(maxsize=1024)
def read_visibility(text: str) -> Visibility | None:
    """The visibility that a text holds; none, which shows nothing, where it cannot be read."""
    try:
        return _decode_visibility(text)
    except _UNREADABLE:
        return None


def read_artifact(visibility: Visibility, data: str) -> Artifact:
    """The artifact of a row, all its own.

    Raises:
        InvalidArtifact: the text holds no artifact.
    """
    try:
        artifact = _decode_artifact(data)
        force_setattr(artifact, "visibility", visibility)  # it was made just now, for this reader
        return artifact
    except _UNREADABLE as error:
        raise InvalidArtifact(f"An artifact in the store cannot be read: {error}.") from error


def read_content(data: str) -> ArtifactContent:
    """The content of a row, which is faster to read than the artifact.

    Raises:
        InvalidArtifact: the text holds no artifact.
    """
    try:
        return _decode_content(data)
    except _UNREADABLE as error:
        raise InvalidArtifact(f"An artifact in the store cannot be read: {error}.") from error


def read_traits(text: str) -> ArtifactTraits:
    """The traits in the text of traits, or in the data of a row.

    Raises:
        InvalidArtifact: the text holds neither.
    """
    try:
        if text.startswith("["):
            return _decode_traits(text)
        counted = _decode_counted(text)
        return ArtifactTraits(counted.type, counted.produced_by, counted.tags)
    except _UNREADABLE as error:
        raise InvalidArtifact(f"An artifact in the store cannot be counted: {error}.") from error


def read_consumption(
    artifact: str, subscription: str, run: str, turn: int, agent: str, at: int
) -> Consumption:
    """The consumption of a row, of which `at` is microseconds."""
    return Consumption(
        artifact=artifact,
        agent=agent,
        subscription=subscription,
        run=run,
        turn=turn,
        at=instant_of(at),
    )


def _row(tenant: str, artifact: Artifact) -> ArtifactRow:
    if type(artifact) is not Artifact:
        raise InvalidArtifact(f"{artifact.id!r} is no plain artifact. Put what it encloses.")
    try:
        visibility = write_visibility(artifact.visibility)
        fields = ArtifactContent.__struct_fields__
        written = ArtifactContent(*map(artifact.__getattribute__, fields))
        data = _encode_plainly(written).decode()
        kept = _decode_content(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArtifact(f"Artifact {artifact.id!r} cannot be written: {error}.") from error
    if kept != written or read_visibility(visibility) != artifact.visibility:
        raise InvalidArtifact(
            f"Artifact {artifact.id!r} would come back as {kept!r}. Let its payload be JSON: "
            "objects with texts as keys, arrays, texts, numbers, true, false and null."
        )
    begin, audience = opening(artifact.visibility)
    return ArtifactRow(
        tenant,
        artifact.id,
        chain_digest(visibility, _content(written)),
        microseconds(artifact.created_at),
        opens=None if begin is ALWAYS else microseconds(begin),
        shared=is_shared(audience),
        visibility=visibility,
        data=data,
        terms=terms_of(tenant, artifact, audience),
    )


def _content(written: ArtifactContent) -> str:
    """What makes two artifacts of one id the same: all but the moment of their publishing, which
    differs when a publisher has to try again, and what is indexed, which may be declared later."""
    same = msgspec.structs.replace(written, created_at=EPOCH, indexed=UNSET)
    return _encode(same).decode()


_KINDS = frozenset({ArtifactPublished.kind, ArtifactConsumed.kind})


class Projection(NamedTuple):
    """What comes on the board with some events, in their order."""

    artifacts: Sequence[Artifact]
    consumptions: Sequence[Consumption]


def project(events: Sequence[Event]) -> Projection | None:
    """What comes on the board with these events; none if they say nothing of it.

    Raises:
        InvalidArtifact: what was taken, or who took it, has no name.
    """
    told = [event for event in events if event.kind in _KINDS]
    if not told:
        return None
    artifacts: list[Artifact] = []
    consumptions: list[Consumption] = []
    for event in told:
        if isinstance(event.data, ArtifactPublished):
            artifacts.append(event.data.artifact)
        else:
            consumptions += _taken(event, event.data)
    return Projection(artifacts, consumptions)


def _taken(event: Event, fact: ArtifactConsumed) -> list[Consumption]:
    """Who took what is on the board. What an agent was given directly is not there, and what goes
    into a run of its own is taken by the turn that it gets there."""
    if not (fact.subscription and fact.turn):
        return []
    return [
        Consumption(
            artifact=artifact,
            agent=fact.agent,
            subscription=fact.subscription,
            run=fact.run or event.run,
            turn=fact.turn,
            at=event.at,
        )
        for artifact in fact.artifacts
    ]
