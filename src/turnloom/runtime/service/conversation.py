"""Conversations at work: what a turn of a talk is about."""

from collections.abc import Sequence
from typing import Any

from turnloom.agents.spec import Engine, Prepared
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import Chosen
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.board.spec import Artifact
from turnloom.conversation.spec import Floor
from turnloom.runs.brief import UNSETTLED, Choice, Contexts, Settlement, Sinks, TurnOutcome
from turnloom.runtime.service.opened import Opened


class TalkBrief:
    """A turn that answers what was said in the run."""

    inputs: tuple[Artifact, ...] = ()
    hears_history = True
    applies_context = False
    timeout: float | None = None
    engines: tuple[Engine, ...] | None = None

    def __init__(self, opened: Opened, turn: int, agent: str) -> None:
        self.turn = turn
        self.agent = agent
        self._state = opened.journal.state
        self.correlation = self._state.run  # what is published for a conversation has its id
        self._selection = opened.selections.own

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
        """The agent's own."""
        return (agent.context,)

    async def request(self, prepared: Prepared, context: AssembledContext) -> Prepared:
        """What message hooks prepared."""
        return prepared

    def listen(self, sinks: Sinks) -> Sinks:
        """Nobody else listens."""
        return sinks

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """What was said is on record already."""
        return UNSETTLED
