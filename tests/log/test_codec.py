"""Events become bytes and the same events again; what is not known is refused."""

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnloom
from tests.log.strategies import events_of, json_values
from tests.support.raising import raising
from turnloom.errors import LogError, TurnloomError, UnknownKind
from turnloom.log.events import RunFinished, RunStarted
from turnloom.log.logic import Codec
from turnloom.log.spec import Event, Fact, Intent
from turnloom.runtime.logic import FACTS, codec

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


DEEP = b'{"question":"q","by":"u","value":' + b"[" * 9000 + b"]" * 9000 + b"}"


def event(fact: Fact, **other: Any) -> Event:
    return Event("id", "run", 7, AT, fact.kind, "driver", fact, v=fact.version, **other)


def stored(**changed: Any) -> bytes:
    """A stored event as a dictionary makes it, whatever its shape."""
    whole: dict[str, Any] = {
        "id": "id",
        "run": "run",
        "seq": 7,
        "at": "2026-01-02T03:04:05.678Z",
        "kind": "run.finished",
        "actor": "driver",
        "data": {"reason": "done"},
    }
    return msgspec.json.encode({**whole, **changed})


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.kind)
def test_every_fact_survives_a_round_trip(fact: type[Fact]) -> None:
    known = codec()

    @settings(max_examples=20)
    @given(events_of(fact))
    def survives(event: Event) -> None:
        line = known.encode(event)
        assert b"\n" not in line
        again = known.decode(line)
        assert again == event
        assert type(again.data) is fact
        assert known.encode(again) == line

    survives()


def facts() -> set[type[Fact]]:
    """Every fact that the package declares; those of its contract suites are samples."""
    for file in Path(turnloom.__path__[0]).glob("*/events.py"):
        import_module(f"turnloom.{file.parent.name}.events")
    found, waiting = set[type[Fact]](), [Fact]
    while waiting:
        waiting += (made := waiting.pop().__subclasses__())
        found.update(made)
    return {fact for fact in found - {Intent} if is_ours(fact.__module__)}


def is_ours(module: str) -> bool:
    return module.startswith("turnloom.") and not module.startswith("turnloom.testing.")


DECLARED = facts()


def test_every_fact_that_is_declared_can_be_stored() -> None:
    assert {*FACTS} == DECLARED


def test_a_fact_that_somebody_adds_is_missed_here() -> None:
    class Planted(Fact, frozen=True):
        kind: ClassVar[str] = "planted"

        __module__ = "turnloom.planted.events"

    assert Planted in facts()


def test_every_fact_has_a_kind_of_its_own() -> None:
    assert len(set(codec().kinds)) == len(FACTS) == len(codec().kinds)


def test_the_bytes_of_an_event_are_what_they_always_were() -> None:
    finished = Event("end", "r1", 9, AT, "run.finished", "driver", RunFinished("done"), 8)
    assert codec().encode(finished) == (
        b'{"id":"end","run":"r1","seq":9,"at":"2026-01-02T03:04:05.678000Z",'
        b'"kind":"run.finished","actor":"driver","data":{"reason":"done"},"cause":8}'
    )
    started = RunStarted("Flow", "1", "d1", "/flows/Flow", {"agents.yaml": "{}"}, {}, user="u")
    assert codec().encode(event(started)) == (
        b'{"id":"id","run":"run","seq":7,"at":"2026-01-02T03:04:05.678000Z","kind":"run.started",'
        b'"actor":"driver","data":{"workflow":"Flow","workflow_version":"1","definition":"d1",'
        b'"root":"/flows/Flow","files":{"agents.yaml":"{}"},"code":{},"user":"u"}}'
    )


def test_what_was_stored_by_hand_is_read() -> None:
    assert codec().decode(stored()) == event(RunFinished("done"))


class Painted(Fact, frozen=True):
    """A wall got its colours."""

    kind: ClassVar[str] = "wall.painted"
    version: ClassVar[int] = 3
    colours: tuple[str, ...]
    by: str


def _to_second(data: dict[str, Any]) -> dict[str, Any]:
    return {"colour": data["color"]}


def _to_third(data: dict[str, Any]) -> dict[str, Any]:
    return {"colours": [data["colour"]], "by": data.get("by", "nobody knows")}


UPCASTS = {("wall.painted", 1): _to_second, ("wall.painted", 2): _to_third}


@pytest.mark.parametrize(
    ("version", "data", "painted"),
    [
        ({}, {"color": "red"}, Painted(("red",), "nobody knows")),
        ({"v": 1}, {"color": "red"}, Painted(("red",), "nobody knows")),
        ({"v": 2}, {"colour": "red", "by": "Ann"}, Painted(("red",), "Ann")),
        ({"v": 3}, {"colours": ["red", "blue"], "by": "Ann"}, Painted(("red", "blue"), "Ann")),
    ],
)
def test_old_shapes_are_lifted_to_todays(
    version: dict[str, int], data: dict[str, Any], painted: Painted
) -> None:
    known = Codec([Painted], UPCASTS)
    found = known.decode(stored(kind="wall.painted", data=data, **version))
    assert found.data == painted
    assert found.v == 3
    assert known.decode(known.encode(found)) == found


def test_the_version_of_a_fact_is_stored_with_it() -> None:
    line = Codec([Painted]).encode(event(Painted(("red",), "Ann")))
    assert msgspec.json.decode(line)["v"] == 3


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (stored(kind="run.exploded"), ["'run.exploded'", "seq 7"]),
        (stored(v=2), ["version 2", "version 1"]),
        (stored(v=0), ["version 0"]),
        (stored(v=-1), ["version -1"]),
        (stored(v="1"), []),
        (stored(data={"reason": 5}), []),
        (stored(data=[]), []),
        (stored(data=None), []),
        (stored(kind="run.failed", data={}), []),
        (stored(data={"reason": "done", "mood": "good"}), ["`mood`"]),
        (stored(mood="good"), ["`mood`"]),
        (
            stored(kind="question.answered", data="DEEP").replace(b'"DEEP"', DEEP),
            [],
        ),
        (stored(seq="7"), []),
        (stored(at="yesterday"), []),
        (stored(cause="x"), []),
        (b"{}", []),
        (b"", []),
        (b"[1", []),
        (b'{"id":"\xff"}', []),
    ],
)
def test_what_this_release_does_not_know_is_refused(line: bytes, values: list[str]) -> None:
    with raising(UnknownKind, *values) as refused:
        codec().decode(line)
    assert refused.value.code == "TURNLOOM-UNKNOWN-KIND"
    assert isinstance(refused.value, LogError) and isinstance(refused.value, TurnloomError)


def test_an_old_shape_that_nothing_lifts_is_refused() -> None:
    broken = Codec([Painted], {("wall.painted", 1): _to_second})
    with raising(UnknownKind, "version 2", "3"):
        broken.decode(stored(kind="wall.painted", data={"color": "red"}))


def test_a_lifted_shape_that_does_not_fit_is_refused() -> None:
    wrong = Codec([Painted], {("wall.painted", 2): lambda data: {"colours": 5, "by": "x"}})
    with pytest.raises(UnknownKind):
        wrong.decode(stored(kind="wall.painted", v=2, data={}))


def test_a_fact_of_another_codec_is_not_encoded() -> None:
    with raising(UnknownKind, "wall.painted"):
        codec().encode(event(Painted(("red",), "Ann")))


def test_a_fact_that_only_borrows_a_kind_is_not_encoded() -> None:
    disguised = Event("id", "run", 7, AT, "run.finished", "driver", Painted((), ""))
    with raising(UnknownKind, "run.finished"):
        codec().encode(disguised)


@given(st.binary(max_size=60) | json_values.map(msgspec.json.encode))
def test_no_bytes_whatever_do_more_than_to_be_refused(line: bytes) -> None:
    with pytest.raises(UnknownKind):
        codec().decode(line)
