"""Logs as golden logs hold and compare them: plain data, path by path, without times.

Turns and steps of one run may go side by side. What happens inside each has an order; how they are
mixed has none, and neither has the number that one of them got. So turns and steps are named after
what they are about, positions after the event that stands there, and every path is compared by
itself.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from turnloom.log.spec import Event

Plain = dict[str, Any]

# Fields that say when, how long, or where a program stood.
TIMES = {"at", "due", "elapsed_ms", "micros", "opens", "root", "stack"}
# Fields that hold the position of an event.
POSITIONS = {"as_in", "first", "last", "frame"}


def plain(events: Sequence[Event]) -> list[Plain]:
    """The events of a run as a golden log has them."""
    return [
        {
            "seq": event.seq,
            "id": event.id,
            "kind": event.kind,
            "actor": event.actor,
            "cause": event.cause,
            "data": _untimed(msgspec.to_builtins(event.data)),
        }
        for event in events
    ]


def _untimed(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _untimed(each) for name, each in data.items() if name not in TIMES}
    return [_untimed(each) for each in data] if isinstance(data, list | tuple) else data


def paths(events: Sequence[Plain]) -> dict[str, list[Plain]]:
    """What a log says of each path, and of the run itself under `""`."""
    names = _Names(events)
    found: dict[str, list[Plain]] = defaultdict(list)
    for event in events:
        path, cause = names.path(event), names.events.get(event["cause"])
        found[names.line(event)].append(
            {
                "id": names.rename(event["id"]),
                "kind": event["kind"],
                "actor": event["actor"],
                "cause": names.id(cause) if cause and names.path(cause) == path else None,
                "data": names.data(event["data"]),
            }
        )
    if events[0]["data"].get("form", "conversation") != "conversation":
        for event in found[""]:  # what several paths lead to comes in any order
            event["cause"] = None
        found[""].sort(key=repr)
    return dict(found)


# The call of a tool, or one of several tries, which may go on beside others of its turn.
_CALL = re.compile(r"[^/]+/model[^/]*/(tool|auto)\.\d+|turn<[^>]*>/s\d+(?=/)")
# The turn or step that an id begins with, or that a timer belongs to.
_OWNER = re.compile(r"^(t|s|flow/retry/)(\d+)(?=$|[/@])")
# Where an id tells a position or an instant.
_PLACE = re.compile(r"@[^/>]*")
# An event that a text of a frame tells the position of.
_SAID = re.compile(r"(?<=\bevent )\d+|(?<=\bevents )\d+|(?<=\d to )\d+")


class _Names:
    """What turns, steps and positions of a log are called."""

    def __init__(self, events: Sequence[Plain]) -> None:
        self.events = {event["seq"]: event for event in events}
        self._turns = dict(_turns(events))
        self._steps = dict(_steps(events))
        self._texts = dict(_texts([event["data"] for event in events]))
        self._strands = dict(_strands(events))

    def path(self, event: Plain) -> str:
        """The path that an event belongs to."""
        id = self.rename(event["id"])
        call = _CALL.match(id)
        if call:
            return call[0]
        own = _OWNER.match(event["id"])
        return self._owner(own) if own else ""

    def line(self, event: Plain) -> str:
        """The path in which an event has its order: of steps, and of what stands between them in a
        flow, the line of work that they belong to."""
        own, data = _OWNER.match(event["id"]), event["data"]
        strand = self._strands.get(int(own[2])) if own and own[1] != "t" else None
        if strand is None and "place" in data:
            strand = data.get("strand", "")
        return self.path(event) if strand is None else f"line<{strand}>"

    def id(self, event: Plain) -> str:
        """What an event is called."""
        return self.rename(event["id"])

    def rename(self, id: str) -> str:
        """An id without numbers that chance or speed may change."""
        own = _OWNER.match(id)
        if own:
            id = self._owner(own) + id[own.end() :]
        return _PLACE.sub("", id)

    def _owner(self, own: "re.Match[str]") -> str:
        kind, number = own[1], int(own[2])
        if kind == "t":
            return self._turns.get(number, own[0])
        return self._steps.get(number, own[0])

    def data(self, data: Any) -> Any:
        """The data of a fact with the names of what it refers to."""
        if isinstance(data, list):
            return [self.data(each) for each in data]
        if not isinstance(data, dict):
            return data
        named = {name: self._field(name, each) for name, each in data.items()}
        if data.get("digest") in self._texts:  # it stands where the run has it first
            named["text"] = self._texts[data["digest"]]
        return named

    def _field(self, name: str, value: Any) -> Any:
        if name in POSITIONS and isinstance(value, int) and value in self.events:
            return self.id(self.events[value])
        if name in ("turn", "retry_of") and isinstance(value, int):
            return self._turns.get(value, value)
        if name == "number" and isinstance(value, int):
            return self._steps.get(value, value)
        if name in ("origin", "reason") and isinstance(value, str):
            return _SAID.sub(lambda seq: self._said(int(seq[0])), value)
        if name in ("call", "question", "waiting_for", "timer", "key") and isinstance(value, str):
            return self.rename(value)
        return self.data(value)

    def _said(self, seq: int) -> str:
        return self.id(self.events[seq]) if seq in self.events else str(seq)


def _turns(events: Iterable[Plain]) -> Iterator[tuple[int, str]]:
    for event in events:
        data = event["data"]
        if event["kind"] == "artifact.consumed":
            again = " again" if data.get("retry_of") else ""
            about = ", ".join(data["artifacts"])
            yield data["turn"], f"turn<{data['subscription']} of {about}{again}>"
        elif event["kind"] == "step.started" and data.get("turn"):
            yield data["turn"], f"turn<{data['place']} {data['attempt']}>"


def _steps(events: Iterable[Plain]) -> Iterator[tuple[int, str]]:
    for event in events:
        if event["kind"] == "step.started":
            yield event["data"]["number"], f"step<{event['data']['place']}>"


def _strands(events: Iterable[Plain]) -> Iterator[tuple[int, str]]:
    for event in events:
        if event["kind"] == "step.started":
            yield event["data"]["number"], event["data"].get("strand", "")


def _texts(data: Any) -> Iterator[tuple[str, str]]:
    """Texts that are known by a digest; of those that are shown again, only that is on record."""
    if isinstance(data, dict):
        if "digest" in data and data.get("text") is not None:
            yield data["digest"], data["text"]
        data = [*data.values()]
    if isinstance(data, list):
        for each in data:
            yield from _texts(each)
