"""Artifacts as stores keep them: rows of text, with what finds them again."""

from collections.abc import Iterable, Set
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from turnloom.board.logic.seeing import ALWAYS, opening
from turnloom.board.logic.terms import terms_of
from turnloom.board.spec import Artifact, Consumption, Visibility, is_shared
from turnloom.board.spec.index import Row
from turnloom.errors import ArtifactExists, InvalidArtifact
from turnloom.kernel.digests import chain
from turnloom.kernel.values import Json

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


class _Written(msgspec.Struct):
    """What a row says of an artifact beside who may see it; nothing checks it, as an artifact was
    checked when it was made."""

    id: str
    type: str
    payload: dict[str, Json]
    produced_by: str
    created_at: datetime
    correlation_id: str | None
    run: str | None
    parents: tuple[str, ...]
    tags: Set[str]
    partition: str | None
    version: int
    indexed: tuple[str, ...] | UnsetType = UNSET


_encode = msgspec.json.Encoder(order="deterministic").encode
_encode_plainly = msgspec.json.Encoder().encode
_decode_visibility = msgspec.json.Decoder[Visibility](Visibility).decode
_decode_written = msgspec.json.Decoder(_Written).decode
_decode_artifact = msgspec.json.Decoder(Artifact).decode


def microseconds(at: datetime) -> int:
    """An instant as a number that every store can order."""
    return (at - EPOCH) // TICK


def instant_of(number: int) -> datetime:
    """The instant that a number stands for."""
    return EPOCH + number * TICK


def rows_of(tenant: str, artifacts: Iterable[Artifact]) -> list[Row]:
    """The rows of a tenant's artifacts in their order, each once.

    Raises:
        InvalidArtifact: one would not come back as it is.
        ArtifactExists: two of them have one id and other content.
    """
    rows: dict[str, Row] = {}
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
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
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
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidArtifact(f"An artifact in the store cannot be read: {error}.") from error


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


def _row(tenant: str, artifact: Artifact) -> Row:
    if type(artifact) is not Artifact:
        raise InvalidArtifact(f"{artifact.id!r} is no plain artifact. Put what it encloses.")
    try:
        visibility = write_visibility(artifact.visibility)
        written = _Written(*map(artifact.__getattribute__, _Written.__struct_fields__))
        data = _encode_plainly(written).decode()
        kept = _decode_written(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArtifact(f"Artifact {artifact.id!r} cannot be written: {error}.") from error
    if kept != written or read_visibility(visibility) != artifact.visibility:
        raise InvalidArtifact(
            f"Artifact {artifact.id!r} would come back as {kept!r}. Let its payload be JSON: "
            "objects with texts as keys, arrays, texts, numbers, true, false and null."
        )
    begin, audience = opening(artifact.visibility)
    return Row(
        tenant,
        artifact.id,
        chain(visibility, _content(written)),
        microseconds(artifact.created_at),
        None if begin is ALWAYS else microseconds(begin),
        is_shared(audience),
        visibility,
        data,
        terms_of(tenant, artifact, audience),
    )


def _content(written: _Written) -> str:
    """What makes two artifacts of one id the same: all but the moment of their publishing, which
    differs when a publisher has to try again, and what is indexed, which may be declared later."""
    same = msgspec.structs.replace(written, created_at=EPOCH, indexed=UNSET)
    return _encode(same).decode()
