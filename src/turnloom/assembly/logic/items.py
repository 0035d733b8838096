"""Items of a slice: what they show of an artifact, and how they stand in a prompt."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from turnloom.board.spec import Artifact, Audience
from turnloom.kernel.values import Json, canonical
from turnloom.variables.logic.types import apart


class Item(dict[str, Any]):
    """An item that knows which provider gave it, what it shows, what of that is redacted, and who
    may see what it was made of.

    `text` is how it stood in a prompt when it was made, so that a later change is noticed.
    """

    __slots__ = ("artifact", "provider", "redacted", "text", "visibility")

    def __init__(
        self,
        content: Mapping[str, Json],
        provider: str,
        artifact: str = "",
        redacted: Sequence[str] = (),
        visibility: Audience = (),
    ) -> None:
        super().__init__(content)
        self.provider = provider
        self.artifact = artifact
        self.redacted = tuple(dict.fromkeys(redacted))
        self.visibility = visibility
        self.text = written(content)

    @property
    def changed(self) -> bool:
        """Whether somebody changed it since it was made."""
        return self.text != written(self)

    def with_payload(self, payload: Json, redacted: Sequence[str] = ()) -> "Item":
        """The same with another payload, in which more is redacted."""
        return self.with_content({**self, "payload": payload}, redacted)

    def with_content(self, content: Mapping[str, Json], redacted: Sequence[str] = ()) -> "Item":
        """The same with another content, in which more is redacted."""
        gone = (*self.redacted, *redacted)
        return Item(content, self.provider, self.artifact, gone, self.visibility)


def written(content: Mapping[str, Json]) -> str:
    """An item as it stands in a prompt, the separator before it included."""
    return f"\n{canonical(content)}"


def described(artifact: Artifact) -> dict[str, Any]:
    """What an item says of an artifact that it shows as it is."""
    return {
        "type": artifact.type,
        "payload": apart(artifact.payload),
        "produced_by": artifact.produced_by,
        "artifact_id": artifact.id,
        "created_at": artifact.created_at.isoformat(),
        "tags": sorted(artifact.tags),
        "correlation_id": artifact.correlation_id,
        "run": artifact.run,
    }


def with_payload(artifact: Artifact, payload: Json) -> Artifact:
    """An artifact of which only this payload is known; nobody else changes it."""
    return msgspec.structs.replace(artifact, payload=apart(payload))
