"""Logs as tests compare them."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from turnloom.log.spec import Event


def essence(events: Sequence[Event]) -> list[Any]:
    """A log without times, what only a resumption brings, and numbers that this shifts."""
    names = {event.seq: event.id for event in events}
    resumed = {event.seq: event.cause for event in events if _is_of_resumption(event)}

    def name(seq: int | None) -> str | None:
        while seq in resumed:
            seq = resumed[seq]
        return names.get(seq) if seq else None

    def plain(event: Event) -> Any:
        data = _untimed(msgspec.to_builtins(event.data))
        for at in (data, data.get("history", {})):
            for field in at.keys() & {"as_in", "first", "last"}:
                at[field] = name(at[field]) if isinstance(at[field], int) else at[field]
        for told in (*data.get("segments", ()), *data.get("withheld", ())):
            for field in ("origin", "reason"):
                told[field] = _SAID.sub(lambda seq: str(name(int(seq[0]))), told[field])
        return event.id, event.kind, event.actor, name(event.cause), data

    return [plain(event) for event in events if event.seq not in resumed]


def _untimed(data: dict[str, Any]) -> dict[str, Any]:
    """A fact without how long something took."""
    for call in data.get("calls", ()):
        call.pop("micros", None)
    return {key: value for key, value in data.items() if key not in ("elapsed_ms", "micros")}


# The number of an event in which something was said, as frames name it.
_SAID = re.compile(r"(?<=\bevent )\d+|(?<=\bevents )\d+|(?<=\d to )\d+")


def _is_of_resumption(event: Event) -> bool:
    return event.kind == "run.resumed" or getattr(event.data, "restored", False)


# The beginning of every id of one call of a tool.
_CALL = re.compile(r"[^/]+/model[^/]*/(tool|auto)\.\d+")


def strands(events: Sequence[Event]) -> dict[str, list[Any]]:
    """What a log says of each call of a tool, and of the rest: calls go on side by side, so how
    their events are mixed, and which one another follows, is not theirs to say."""
    found: dict[str, list[Any]] = {}
    for id, kind, actor, _, data in essence(events):
        call = _CALL.match(id)
        found.setdefault(call[0] if call else "", []).append((id, kind, actor, data))
    return found
