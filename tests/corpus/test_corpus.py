"""Old logs replay: today's release folds, decides, derives and assembles what they hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.corpus.recording import FOLDER, ROOT, RUNS, record
from turnloom.agents.events import QuestionAsked, TurnStarted
from turnloom.agents.logic.views import view_of
from turnloom.agents.spec import Ask, Decision, Finish, RunState, TakeTurn
from turnloom.assembly.events import FrameAssembled
from turnloom.assembly.logic import frame, system_text
from turnloom.conversation.events import RouteDecided
from turnloom.kernel.digests import digest
from turnloom.log.events import RunFinished, RunStarted
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec, derive, evolve, freeze, fresh, thaw
from turnloom.runtime.spec import Loaded
from turnloom.testing import ScriptedEngine
from turnloom.variables.events import ContextChanged
from turnloom.wiring import Folders

# What a run makes by itself, so that it can be made again.
MADE = {
    each.kind
    for each in (
        RouteDecided,
        TurnStarted,
        QuestionAsked,
        RunFinished,
        FrameAssembled,
        ContextChanged,
    )
}
LOGS = sorted(FOLDER.glob("*.jsonl"))


class Ending(NamedTuple):
    """How a run is known to have ended."""

    status: str
    turns: dict[str, int]
    values: dict[str, Any]


ENDINGS = {
    "interview_finished": Ending(
        "finished",
        {"Asker": 3, "Planner": 3},
        {"tier": "beta", "flag": True, "known": True, "stage": "done", "user_id": "u1"},
    ),
    "interview_cancelled": Ending(
        "cancelled",
        {"Asker": 2},
        {"tier": "beta", "flag": False, "known": False, "stage": "asking", "app_id": "acme"},
    ),
    "interview_failed_in_production": Ending(
        "failed", {"Asker": 1, "Planner": 2}, {"tier": "beta", "known": True, "stage": "planning"}
    ),
    "interview_without_variables": Ending(
        "cancelled", {"Asker": 2}, {"context_aware": True, "user_id": "u1"}
    ),
}


def read(log: Path) -> list[Event]:
    return [codec().decode(line) for line in log.read_bytes().splitlines()]


async def restored(events: Sequence[Event]) -> Loaded:
    """The workflow that a run is pinned to, from its log alone."""
    started = events[0].data
    assert isinstance(started, RunStarted)
    assert started.root == ROOT
    return await Folders(ScriptedEngine({})).restore(started)


def test_the_corpus_holds_what_is_known_of_it() -> None:
    assert {log.stem for log in LOGS} == set(ENDINGS) == set(RUNS)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_an_old_log_is_whole_and_says_nothing_of_the_machine_it_was_made_on(log: Path) -> None:
    events = read(log)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({event.id for event in events}) == len(events)
    assert all(event.cause is None or event.cause < event.seq for event in events)
    for word in (b"/tmp", b"/home", b"/Users", b"C:\\\\"):
        assert word not in log.read_bytes()


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
async def test_an_old_log_folds_to_the_state_that_it_had(log: Path) -> None:
    events = read(log)
    workflow = (await restored(events)).workflow
    state, again = fresh(events[0].run, workflow), fresh(events[0].run, workflow)
    for event in events:
        evolve(workflow, state, event)
        if state.open is None:
            again = thaw(workflow, freeze(again)) or again
        evolve(workflow, again, event)
    assert state == again, "a state that was frozen and thawed went another way"
    ending = ENDINGS[log.stem]
    assert (state.status, state.turns_of) == (ending.status, ending.turns)
    assert {name: state.values[name] for name in ending.values} == ending.values


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
async def test_an_old_run_goes_again_where_it_went(log: Path) -> None:
    """Routes, turns, questions, ends, derived values and frames: all of them made again."""
    events = read(log)
    loaded = await restored(events)
    made = Again(loaded, events[0].run)
    for event in events:
        made.check(event)
    assert made.compared == [event.seq for event in events if event.kind in MADE]
    assert len(made.compared) > 5


class Again:
    """A run that is made again beside its log."""

    def __init__(self, loaded: Loaded, run: str) -> None:
        self.workflow = loaded.workflow
        self.state = fresh(run, loaded.workflow)
        self.derived: dict[str, Any] = {}
        self.compared: list[int] = []

    def check(self, event: Event) -> None:
        """Compare an event with what is made in its place, then fold it."""
        match event.data:
            case RouteDecided() as fact:
                assert dict(self._decide().facts) == {event.id: fact}
            case TurnStarted(agent=agent):
                assert self._decide() == TakeTurn(agent)
            case QuestionAsked(question=question, prompt=prompt, to=to):
                decision = self._decide()
                assert isinstance(decision, Ask)
                asked = decision.question
                assert (asked.id, asked.prompt, asked.to) == (question, prompt, to)
            case RunFinished(reason=reason):
                assert self._decide() == Finish(reason)
            case FrameAssembled() as fact:
                assert _frame_again(self.workflow, self.state, fact) == fact
            case ContextChanged() as fact:
                assert self.derived.pop(event.id) == fact
            case _:
                self._fold(event)
                return
        self.compared.append(event.seq)
        self._fold(event)

    def _fold(self, event: Event) -> None:
        evolve(self.workflow, self.state, event)
        if event.kind == ContextChanged.kind:
            return
        assert not self.derived, "the log misses a change"
        changes = derive(self.workflow, self.state, event)
        self.derived = {f"{event.id}>{change.name}": change for change in changes}

    def _decide(self) -> Decision:
        return self.workflow.decide(self.state)


def _frame_again(workflow: Any, state: RunState, fact: FrameAssembled) -> FrameAssembled:
    shown = view_of(workflow.agents[fact.agent], workflow.variables, state)
    seen = state.views.get(shown.digest)
    made = frame(fact.turn, fact.agent, shown, state.history, seen[0] if seen else 0, state.texts)
    held = {**state.texts, **{s.digest: s.text for s in made.segments if s.text is not None}}
    segments = made.segments or (seen[1] if seen else ())
    assert system_text(segments, held) == shown.text
    assert all(digest(held[segment.digest]) == segment.digest for segment in segments)
    return made


@pytest.mark.parametrize("name", RUNS)
async def test_a_run_that_is_recorded_today_replays_as_well(name: str) -> None:
    events = await record(RUNS[name])
    assert [codec().decode(codec().encode(event)) for event in events] == events
    made = Again(await restored(events), events[0].run)
    for event in events:
        made.check(event)
    ending = ENDINGS[name]
    assert (made.state.status, made.state.turns_of) == (ending.status, ending.turns)
