"""Conversations at work: turns of a talk, and who takes the next one."""

from collections.abc import Sequence
from typing import Any

from turnloom.agents.events import ChanceDrawn
from turnloom.agents.spec import Engine, Prepared
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import Chosen
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.board.spec import Artifact
from turnloom.conversation.spec import Floor
from turnloom.runs.actions import Action, Draw, Pick, Select, Work
from turnloom.runs.brief import (
    UNSETTLED,
    Choice,
    Contexts,
    Settlement,
    Sinks,
    TurnOutcome,
    contexts_of,
)
from turnloom.runtime.service.functions import Values
from turnloom.runtime.service.live import LiveRun
from turnloom.runtime.service.picking import pick
from turnloom.runtime.service.selections import Wanted


class TalkRuntime:
    """The acting half of a conversation, for one run."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal

    async def act(self, action: Action) -> Action | None:
        """Let chance, a model or a guard say who speaks next."""
        match action:
            case Draw(id=id, among=among):
                drawn = among[self._live.means.entropy.below(len(among))]
                await self._journal.put(id, ChanceDrawn(among, drawn))
            case Pick():
                await pick(self._journal, self._live.loaded, action, self._live.means)
            case Select(id=id, agent=meant):
                selection = self._live.selections.own
                assert selection is not None
                values = Values(self._journal.state.values)
                wanted = Wanted(selection.candidates, values, meant)
                await self._live.selections.choose(id, selection, wanted)
            case _:
                raise AssertionError(f"a conversation does not decide on {action!r}")
        return None

    async def run(self, work: Work) -> None:
        """Take a turn."""
        sinks = self._live.sinks(work.turn, work.agent)
        await self._live.turns.take(TalkBrief(self._live, work), sinks)

    async def cut_off(self, work: Work) -> None:
        """Record that a turn was cancelled."""
        await self._live.cut_off_turn(work)

    async def fail(self, work: Work, error: str) -> None:
        """Record that a turn ended itself."""
        outcome = TurnOutcome(f"CancelledError: {error}")
        await self._live.turns.end(TalkBrief(self._live, work), outcome, UNSETTLED)


class TalkBrief:
    """A turn that answers what was said in the run."""

    inputs: tuple[Artifact, ...] = ()
    hears_history = True
    applies_context = False
    timeout: float | None = None
    engines: tuple[Engine, ...] | None = None

    def __init__(self, live: LiveRun, work: Work) -> None:
        self.turn = work.turn
        self.agent = work.agent
        self._state = live.journal.state
        self.correlation = self._state.run  # what is published for a conversation has its id
        self._selection = live.selections.own

    @property
    def about(self) -> Any:
        """The variables of the run."""
        return self._state.values

    @property
    def choice(self) -> Choice | None:
        """The guard's selection, if it chose this agent."""
        floor: Floor = self._state.progress
        if self._selection is None or floor.selected != self.agent:
            return None
        return Choice(self._selection, (floor.category,), self.agent)

    def contexts(self, agent: Contexts) -> Sequence[Chosen | Assembly | None]:
        """That of each engine, else the agent's."""
        return contexts_of(agent, agent.context)

    async def request(self, prepared: Prepared, context: AssembledContext) -> Prepared:
        """What message hooks prepared."""
        return prepared

    def listen(self, sinks: Sinks) -> Sinks:
        """Nobody else listens."""
        return sinks

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """What was said is on record already."""
        return UNSETTLED
