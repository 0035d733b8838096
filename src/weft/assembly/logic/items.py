"""Items of a slice: what they show of an artifact, and how they stand in a prompt."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.board.spec import Artifact
from weft.kernel.values import Json, canonical
from weft.variables.logic.types import apart


class Item(dict[str, Any]):
    """An item that knows which provider gave it, what it shows, and what of that is redacted.

    `text` is how it stood in a prompt when it was made, so that a later change is noticed.
    """

    __slots__ = ("artifact", "provider", "redacted", "text")

    def __init__(
        self,
        content: Mapping[str, Any],
        provider: str,
        artifact: str = "",
        redacted: Sequence[str] = (),
    ) -> None:
        super().__init__(content)
        self.provider = provider
        self.artifact = artifact
        self.redacted = tuple(dict.fromkeys(redacted))
        self.text = written(content)

    @property
    def changed(self) -> bool:
        """Whether somebody changed it since it was made."""
        return self.text != written(self)

    def with_payload(self, payload: Json, redacted: Sequence[str] = ()) -> "Item":
        """The same with another payload, in which more is redacted."""
        content = {**self, "payload": payload}
        return Item(content, self.provider, self.artifact, (*self.redacted, *redacted))


def written(content: Mapping[str, Any]) -> str:
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
