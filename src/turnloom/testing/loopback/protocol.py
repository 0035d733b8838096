"""What the protocols of a model on loopback have in common."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

CREATED = 1_767_225_600

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ProtocolReply(Protocol):
    """One answer as data of a protocol."""

    def whole(self) -> dict[str, Any]:
        """The answer in one piece."""
        ...

    def chunks(self) -> Iterator[dict[str, Any]]:
        """The answer in chunks, up to its end."""
        ...

    def begun(self) -> Iterator[dict[str, Any]]:
        """The answer in chunks, as far as it has a text, and no end."""
        ...

    def endless(self) -> Iterator[dict[str, Any]]:
        """All chunks of the answer but those that say how it ended."""
        ...

    def unended(self) -> dict[str, Any]:
        """The answer in one piece that does not say how it ended."""
        ...

    def hollow(self) -> dict[str, Any]:
        """A reply in one piece that holds no answer."""
        ...

    def nothing(self) -> Iterator[dict[str, Any]]:
        """Chunks that hold no answer."""
        ...


def error(status: int, message: str) -> dict[str, Any]:
    """The body of a refusal."""
    kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}
    return {"error": {"message": message, "type": kinds.get(status, "server_error")}}


def models(name: str) -> dict[str, Any]:
    """The list of models."""
    listed = {"id": name, "object": "model", "created": CREATED, "owned_by": "loopback"}
    return {"object": "list", "data": [listed]}


def unnamed(names: Iterable[str]) -> str | None:
    """Which of these is no name of a tool, if one is not."""
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    return f"{wrong[0]!r} is no name of a function." if wrong else None


def halves(text: str) -> tuple[str, str]:
    """A text in two pieces."""
    return text[: len(text) // 2], text[len(text) // 2 :]
