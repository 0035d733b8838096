"""Artifacts as stores keep them: rows of text, with what finds them again."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from turnloom.board.logic.seeing import ALWAYS, opening
from turnloom.board.logic.terms import terms_of
from turnloom.board.spec import Artifact, Consumption, Visibility
from turnloom.board.spec.index import Row
from turnloom.errors import ArtifactExists, InvalidArtifact
from turnloom.kernel.digests import chain

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)

_encode = msgspec.json.Encoder(order="deterministic").encode
_encode_plainly = msgspec.json.Encoder().encode
_decode_visibility = msgspec.json.Decoder[Visibility](Visibility).decode
# What an artifact says beside who may see it.
_decode_rest = msgspec.json.Decoder(Artifact).decode


def microseconds(at: datetime) -> int:
    """An instant as a number that every store can order."""
    return (at - EPOCH) // TICK


def instant_of(number: int) -> datetime:
    """The instant that a number stands for."""
    return EPOCH + number * TICK


def rows_of(artifacts: Iterable[Artifact]) -> list[Row]:
    """The rows of artifacts in their order, each once.

    Raises:
        InvalidArtifact: one would not come back as it is.
        ArtifactExists: two of them have one id and other content.
    """
    rows: dict[str, Row] = {}
    for artifact in artifacts:
        row = _row(artifact)
        if rows.setdefault(row.id, row).digest != row.digest:
            raise ArtifactExists(row.id)
    return list(rows.values())


def write_visibility(visibility: Visibility) -> str:
    """A visibility as text: the same for the same."""
    return _encode(visibility).decode()


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
        artifact = _decode_rest(data)
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


def _row(artifact: Artifact) -> Row:
    try:
        visibility = write_visibility(artifact.visibility)
        rest = {name: getattr(artifact, name) for name in artifact.__struct_fields__}
        del rest["visibility"]
        data = _encode_plainly(rest).decode()
        kept = _decode_rest(data)
        force_setattr(kept, "visibility", read_visibility(visibility))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArtifact(f"Artifact {artifact.id!r} cannot be written: {error}.") from error
    if kept != artifact:
        raise InvalidArtifact(
            f"Artifact {artifact.id!r} would come back as {kept!r}. Let its payload be JSON: "
            "objects with texts as keys, arrays, texts, numbers, true, false and null."
        )
    begin, audience = opening(artifact.visibility)
    return Row(
        artifact.id,
        chain(visibility, _content(rest)),
        microseconds(artifact.created_at),
        None if begin is ALWAYS else microseconds(begin),
        visibility,
        data,
        tuple(terms_of(artifact, audience)),
    )


def _content(rest: dict[str, Any]) -> str:
    """What makes two artifacts of one id the same: all but the moment of their publishing, which
    differs when a publisher has to try again."""
    return _encode({**rest, "created_at": None}).decode()
