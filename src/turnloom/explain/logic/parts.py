"""The model calls of a turn, engine by engine and try by try, and what each was asked with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from turnloom.agents.events import ModelAnswered, ModelCalled, ToolFailed, ToolReturned
from turnloom.agents.logic.exchanges import exchange_of, passed_on, request
from turnloom.agents.spec import Exchange
from turnloom.explain.logic.calls import Part, model_call_of, part_of, place_of
from turnloom.explain.logic.steps import Call, exchanges_given
from turnloom.explain.spec.text import counted


class Asking(NamedTuple):
    """The calls of one engine in one try, and the exchanges that the last of them was given.

    The first of these are of the engines before it: one for each.
    """

    part: Part
    calls: list[Call]
    exchanges: tuple[Exchange, ...]


def askings(found: Sequence[Call]) -> list[Asking]:
    """The model calls of a turn by their part of it, in the order they began."""
    by_part: dict[Part, list[Call]] = {}
    for call in found:
        if isinstance(call.events[0].data, ModelCalled):
            by_part.setdefault(part_of(call.key), []).append(call)
    return [
        Asking(part, calls, (*_passed_on(part, by_part), *_exchanges(calls, found)))
        for part, calls in by_part.items()
    ]


def _passed_on(part: Part, by_part: Mapping[Part, Sequence[Call]]) -> Iterator[Exchange]:
    """What the engines before this one left for it."""
    for engine in range(part.engine):
        *_, last = by_part[part._replace(engine=engine)]
        yield passed_on([event.data for event in last.events])


def _exchanges(calls: Sequence[Call], found: Sequence[Call]) -> Iterator[Exchange]:
    """What each model call but the last left for those behind it."""
    for call in calls[:-1]:
        answered = call.one(ModelAnswered)
        said = [event.data for event in call.events]
        tools = [each for each in found if model_call_of(each.key) == call.key]
        outcomes = [
            ended[1]
            for each in sorted(tools, key=lambda tool: place_of(tool.key))
            if (ended := each.one(ToolReturned, ToolFailed))
        ]
        if answered and (exchange := exchange_of(answered[1], said, outcomes)) is not None:
            yield from (*answered[1].before, exchange)


def asking_doubts(asking: Asking, frame: str) -> Iterator[str]:
    """Every call that was asked with something else than the frame and the exchanges before it."""
    part = f"{asking.part.name}, " if asking.part.name else ""
    counts = exchanges_given(asking.calls)
    for number, call in enumerate(asking.calls, 1):
        given = counts[call.key]
        said, again = call.events[0].data.request, request(frame, asking.exchanges[:given])
        if said != again:
            with_what = f"the frame and {counted(given, 'exchange')}" if given else "this frame"
            asked = f"{part}model call {number} was asked with request {said}"
            yield f"{asked}, and {with_what} is {again}"
