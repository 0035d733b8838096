"""A backtest against the truth: the edited definition, really run on the same scripted world."""

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from turnloom.agents.events import TurnStarted
from turnloom.kernel.threads import UserCalls, counted, on_behalf_of
from turnloom.log.spec import Event
from turnloom.runtime.backtest.backtesting import Backtester
from turnloom.runtime.backtest.comparing import parts_of, unknown_in
from turnloom.runtime.backtest.spec import BacktestedRun, PartDifference, RecordedCase
from turnloom.runtime.backtest.world import EditedWorld
from turnloom.runtime.replay.idle import IdleSelector, run_until_over
from turnloom.runtime.replay.record import Stopped
from turnloom.runtime.spec import LoadedWorkflow


class Noted(EditedWorld):
    """Notes what was decided while everything was certain, and on assumptions."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.undecided: set[str] = set()
        self.findings.count = self._noted(self.findings.count)
        self.sure: list[Event] = []
        self.assumed: list[Event] = []

    def _noted(self, count: Callable[[PartDifference], None]) -> Callable[[PartDifference], None]:
        def note(found: PartDifference) -> None:
            if found.certainty == "undecided" and found.decided is not None:
                self.undecided.add(found.decided.id)
            count(found)

        return note

    def _write(self, event: Event) -> Event:
        is_frame = event.kind == "frame.assembled"
        was_sure = not self.findings.is_assumed or (is_frame and not self.assumed)
        (self.sure if was_sure else self.assumed).append(event)
        return super()._write(event)


class Verdict(NamedTuple):
    """A backtested run, with what it decided."""

    run: BacktestedRun
    undecided: Set[str]
    sure: Sequence[Event]
    assumed: Sequence[Event]


def backtested(loaded: LoadedWorkflow, events: Sequence[Event], plan: str = "") -> Verdict:
    """Backtest a run; call it off the event loop."""

    async def test(selector: IdleSelector) -> Verdict:
        calls = UserCalls()
        world = Noted(events, calls)
        with counted(calls), on_behalf_of(events[0].data.tenant):
            tester = Backtester(selector, RecordedCase(loaded, events, plan=plan), world)
            try:
                await tester.replay()
            except Stopped:
                pass
        world.close()
        return Verdict(tester.result(), world.undecided, world.sure, world.assumed)

    return run_until_over(test)


def lies(
    tested: Verdict, real: Sequence[Event], *, assumed: bool = False, ordered: bool = True
) -> list[str]:
    """What a backtest says for sure, and the real run of the edited definition does otherwise. With
    an engine that answers the same whatever it is shown, assumptions must hold as well."""
    by_id = {event.id: event for event in real}
    found: list[str] = []
    for event in [*tested.sure, *(tested.assumed if assumed else ())]:
        for part in parts_of(event.data):
            is_undecided = part.part == "frame" and event.id in tested.undecided
            if part.name == "chat_id" or is_undecided or unknown_in(part.value):
                continue
            there = by_id.get(event.id)
            told = (
                {(each.part, each.name): each.value for each in parts_of(there.data)}
                if there
                else {}
            )
            if told.get((part.part, part.name), "nothing") != part.value:
                was = told.get((part.part, part.name), "nothing")
                found.append(f"{event.id} {part.part} {part.name}: {part.value!r}, really {was!r}")
    return found + (_missed(tested, real) if ordered else [])


def _missed(tested: Verdict, real: Sequence[Event]) -> list[str]:
    """Parts of the real run that come before what the backtest is sure of, and that it lacks."""
    ours = {event.id for event in (*tested.sure, *tested.assumed)}
    known = [place for place, event in enumerate(real) if event.id in {e.id for e in tested.sure}]
    upto = real[: max(known, default=0) + 1]
    return [f"{e.id} is missing" for e in upto if parts_of(e.data) and e.id not in ours]


def speakers(events: Sequence[Event]) -> list[str]:
    """Who spoke, in order."""
    return [event.data.agent for event in events if isinstance(event.data, TurnStarted)]
