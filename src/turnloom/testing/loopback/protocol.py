"""The parts that both protocols of the loopback model share."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

CREATED = 1_767_225_600

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ProtocolReply(Protocol):
    """One answer in the form of a protocol."""

    def whole(self) -> dict[str, Any]:
        """The answer as one response."""
        ...

    def chunks(self) -> Iterator[dict[str, Any]]:
        """All chunks of the answer."""
        ...

    def text_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks of the answer's text."""
        ...

    def unfinished_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks of the answer without the finish reason."""
        ...

    def unfinished(self) -> dict[str, Any]:
        """The answer as one response without a finish reason."""
        ...

    def empty(self) -> dict[str, Any]:
        """One response without an answer."""
        ...

    def empty_chunks(self) -> Iterator[dict[str, Any]]:
        """Chunks without an answer."""
        ...


def error(status: int, message: str) -> dict[str, Any]:
    """The body of an error response."""
    kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}
    return {"error": {"message": message, "type": kinds.get(status, "server_error")}}


def models(name: str) -> dict[str, Any]:
    """The list of models."""
    listed = {"id": name, "object": "model", "created": CREATED, "owned_by": "loopback"}
    return {"object": "list", "data": [listed]}


def name_problem(names: Iterable[str]) -> str | None:
    """The problem with the first invalid tool name; None if all are valid."""
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    return f"Invalid function name {wrong[0]!r}." if wrong else None


def halves(text: str) -> tuple[str, str]:
    """A text, split in two."""
    return text[: len(text) // 2], text[len(text) // 2 :]
