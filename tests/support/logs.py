"""Logs as tests compare them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.log.spec import Event


def essence(events: Sequence[Event]) -> list[Any]:
    """A log without times, what only a resumption brings, and numbers that this shifts."""
    names = {event.seq: event.id for event in events}
    resumed = {event.seq: event.cause for event in events if _is_of_resumption(event)}

    def name(seq: int | None) -> str | None:
        while seq in resumed:
            seq = resumed[seq]
        return names.get(seq) if seq else None

    def plain(event: Event) -> Any:
        data = msgspec.to_builtins(event.data)
        data.pop("elapsed_ms", None)
        for at in (data, data.get("history", {})):
            for field in ("as_in", "first", "last"):
                if isinstance(at.get(field), int):
                    at[field] = name(at[field])
        return event.id, event.kind, event.actor, name(event.cause), data

    return [plain(event) for event in events if event.seq not in resumed]


def _is_of_resumption(event: Event) -> bool:
    return event.kind == "run.resumed" or getattr(event.data, "restored", False)
