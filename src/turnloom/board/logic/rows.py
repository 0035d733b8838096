"""Artifacts as rows of a store, their index terms, and the projection of events."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
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
from turnloom.board.spec.artifacts import OpenVisibility
from turnloom.board.spec.queries import ArtifactContent, ArtifactRow, ArtifactTraits
from turnloom.errors import ArtifactExists, InvalidArtifact
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import Json
from turnloom.log.spec import Event

# The kind of a fact and its value.
Key = tuple[str, str]
# The kind of a scope, its value and its tenant.
Scope = tuple[str, str, str]

EVERYTHING: Key = ("all", "")
# The scope that every tenant searches.
SHARED: Scope = ("shared", "", "")


# Ids of runs and correlations are new all the time: a larger cache would hold little else.
@lru_cache(maxsize=2_048)
def term(scope: Scope, fact: Key) -> int:
    """The index term of a fact in a scope: a signed 64-bit number."""
    text = "\0".join((*scope, *fact)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def tagged(type: str, tag: str) -> Key:
    """The fact that an artifact of a type has a tag."""
    return ("tagged", f"{type}\0{tag}")


def typed(type: str) -> tuple[Key, Key]:
    """The facts for a type: without indexed fields, or with."""
    return ("type", type), ("indexed", type)


def valued(type: str, field: str, values: Iterable[Json]) -> tuple[Key, ...] | None:
    """Facts that cover every artifact of a type with one of these values in a field; None if a
    value is not scalar."""
    written = [_simple(value) for value in values]
    if None in written:
        return None
    found = [_field(type, field, each) for each in written if each is not None]
    return (("type", type), ("unindexed", f"{type}\0{field}"), *found)


def terms_of(tenant: str, artifact: Artifact, audience: OpenVisibility) -> tuple[int, ...]:
    """The index terms of a tenant's artifact."""
    facts = _facts(artifact)
    return tuple([term(scope, fact) for scope in _scopes(tenant, audience) for fact in facts])


def terms_of_run(tenant: str, run: str) -> tuple[int, ...]:
    """The index terms of a run's artifacts; others may collide."""
    scopes: tuple[Scope, ...] = (("public", "", tenant), ("restricted", "", tenant), SHARED)
    return tuple(term(scope, ("run", run)) for scope in scopes)


@lru_cache(maxsize=1024)
def scopes_of(reader: Reader) -> tuple[Scope, ...]:
    """The scopes that a reader searches; each visible artifact is in exactly one."""
    tenant = reader.tenant
    public: Scope = ("public", "", tenant)
    if reader.role == "developer":
        return (public, ("restricted", "", tenant), SHARED)
    agent: list[Scope] = [("agent", reader.agent, tenant)] if reader.agent else []
    labels: list[Scope] = [("label", label, tenant) for label in sorted(reader.labels)]
    return (public, *agent, ("tenant", tenant, tenant), *labels, SHARED)


def _scopes(tenant: str, audience: OpenVisibility) -> Sequence[Scope]:
    match audience:
        case Shared():
            return (SHARED,)
        case Public():
            return (("public", "", tenant),)
        case Private(agents=agents):
            named: list[Scope] = [("agent", agent, tenant) for agent in agents]
        case Labelled(labels=labels):
            named = [("label", min(labels), tenant)]  # a reader with all labels has this one
        case Tenant(tenant_id=name):
            named = [("tenant", name, tenant)]
    return (*named, ("restricted", "", tenant))  # for developers


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
    """A text for a scalar that is the same for equal values, as in `matching`; None for arrays and
    objects."""
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
_content_fields = attrgetter(*ArtifactContent.__struct_fields__)
_decode_traits = msgspec.json.Decoder(ArtifactTraits).decode
# What decoding raises on a text that holds something else.
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


class _Counted(msgspec.Struct):
    """The traits in the data of a row; the rest is skipped."""

    type: str
    produced_by: str
    tags: tuple[str, ...]


class _Identified(msgspec.Struct):
    """The id in the data of a row; the rest is skipped."""

    id: str


_decode_id = msgspec.json.Decoder(_Identified).decode
_decode_counted = msgspec.json.Decoder(_Counted).decode


def microseconds(at: datetime) -> int:
    """An instant as an integer that every store can order."""
    return (at - EPOCH) // TICK


def instant_of(number: int) -> datetime:
    """The instant of a number of microseconds."""
    return EPOCH + number * TICK


def rows_of(tenant: str, artifacts: Iterable[Artifact]) -> list[ArtifactRow]:
    """The rows of a tenant's artifacts in order, without duplicates.

    Raises:
        InvalidArtifact: one does not survive a round trip.
        ArtifactExists: two have the same id and different content.
    """
    rows: dict[str, ArtifactRow] = {}
    for artifact in artifacts:
        row = _row(tenant, artifact)
        if not is_same_content(rows.setdefault(row.id, row), row):
            raise ArtifactExists(row.id)
    return list(rows.values())


@lru_cache(maxsize=1024)
def write_visibility(visibility: Visibility) -> str:
    """A visibility as canonical text."""
    return _encode(visibility).decode()


@lru_cache(maxsize=1024)
def read_visibility(text: str) -> Visibility | None:
    """The visibility of a text; None, which hides everything, if it is unreadable."""
    try:
        return _decode_visibility(text)
    except _UNREADABLE:
        return None


class _StoredVisibility(NamedTuple):
    """A visibility as the rows of a store have it, and whether it is read back as it was."""

    text: str
    opens: int | None
    shared: bool
    audience: OpenVisibility
    is_kept: bool


@lru_cache(maxsize=1024)
def _stored_visibility(visibility: Visibility) -> _StoredVisibility:
    text, (begin, audience) = write_visibility(visibility), opening(visibility)
    opens = None if begin is ALWAYS else microseconds(begin)
    is_kept = read_visibility(text) == visibility
    return _StoredVisibility(text, opens, is_shared(audience), audience, is_kept=is_kept)


def read_artifact(visibility: Visibility, data: str) -> Artifact:
    """The artifact of a row, as a new copy.

    Raises:
        InvalidArtifact: the row is unreadable.
    """
    try:
        artifact = _decode_artifact(data)
        force_setattr(artifact, "visibility", visibility)  # a new object, not yet shared
        return artifact
    except _UNREADABLE as error:
        raise InvalidArtifact(f"An artifact in the store cannot be read: {error}.") from error


def read_content(data: str) -> ArtifactContent:
    """The content of a row, which is faster to read than the artifact.

    Raises:
        InvalidArtifact: the row is unreadable.
    """
    try:
        return _decode_content(data)
    except _UNREADABLE as error:
        raise InvalidArtifact(f"An artifact in the store cannot be read: {error}.") from error


def read_id(data: str) -> str:
    """The id in the data of a row, without reading the rest; empty if it is unreadable."""
    try:
        return _decode_id(data).id
    except _UNREADABLE:
        return ""


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
    """The consumption of a row; `at` is in microseconds."""
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
        raise InvalidArtifact(f"{artifact.id!r} is an envelope. Store the plain artifact.")
    try:
        seen = _stored_visibility(artifact.visibility)
        written = ArtifactContent(*_content_fields(artifact))
        data = _encode_plainly(written).decode()
        kept = _decode_content(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArtifact(f"Artifact {artifact.id!r} cannot be stored: {error}.") from error
    if kept != written or not seen.is_kept:
        raise InvalidArtifact(
            f"Artifact {artifact.id!r} would be stored as {kept!r}. Use only JSON in its payload: "
            "objects with texts as keys, arrays, texts, numbers, true, false and null."
        )
    return ArtifactRow(
        tenant,
        artifact.id,
        microseconds(artifact.created_at),
        opens=seen.opens,
        shared=seen.shared,
        visibility=seen.text,
        data=data,
        terms=terms_of(tenant, artifact, seen.audience),
    )


def content_digest(row: ArtifactRow) -> str:
    """The digest of what an artifact says, to tell it from another one of the same id."""
    return chain_digest(row.visibility, _content(_decode_content(row.data)))


def is_same_content(one: ArtifactRow, other: ArtifactRow) -> bool:
    """Whether two rows of one id hold the same artifact."""
    return one is other or content_digest(one) == content_digest(other)


def _content(written: ArtifactContent) -> str:
    """The content that must be equal for one id: everything but the time, which differs on a retry,
    and the indexed fields, which may be declared later."""
    same = msgspec.structs.replace(written, created_at=EPOCH, indexed=UNSET)
    return _encode(same).decode()


# The kinds of events that change a board.
PROJECTED = frozenset({ArtifactPublished.kind, ArtifactConsumed.kind})


class Projection(NamedTuple):
    """The artifacts and consumptions of some events, in order."""

    artifacts: Sequence[Artifact]
    consumptions: Sequence[Consumption]


def project(events: Sequence[Event]) -> Projection | None:
    """The artifacts and consumptions of events; None if there are none.

    Raises:
        InvalidArtifact: a consumption has an invalid name.
    """
    relevant = [event for event in events if event.kind in PROJECTED]
    if not relevant:
        return None
    artifacts: list[Artifact] = []
    consumptions: list[Consumption] = []
    for event in relevant:
        if isinstance(event.data, ArtifactPublished):
            artifacts.append(event.data.artifact)
        else:
            consumptions += _taken(event, event.data)
    return Projection(artifacts, consumptions)


def _taken(event: Event, fact: ArtifactConsumed) -> list[Consumption]:
    """The consumptions of artifacts on the board. Artifacts passed directly to an agent are not on
    it, and those for a separate run are consumed by a turn there."""
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
