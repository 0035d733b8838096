"""What a turn is about: one value, the same to everything inside the turn, whatever the form."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from turnloom.agents.spec import Engine, PreparedRequest
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import Artifact
from turnloom.guards.spec import Selection
from turnloom.log.spec import Fact

# Takes pieces of an answer while it is made; `None` when it is made from its beginning again.
TextSink = Callable[[str | None], None]

# Gives the sink for a turn's model call of that number, from 1.
Sinks = Callable[[int], TextSink]


def discard(text: str | None) -> None:
    """Discard a piece of an answer."""


class TurnOutcome(NamedTuple):
    """How an agent's answer ended: the error, if there is one, the facts of its last model call,
    and the context it was given. `cause` is the exception behind an error, where one is known."""

    error: str
    facts: Sequence[Fact] = ()
    context: AssembledContext = AssembledContext.empty()
    cause: Exception | None = None


class Settlement(NamedTuple):
    """What a turn leads to: facts with their ids and actors; or trouble, which is not the turn's
    but its step's."""

    facts: Sequence[tuple[str, Fact, str]] = ()
    trouble: Exception | None = None


UNSETTLED = Settlement()


class Choice(NamedTuple):
    """A selection that chose who takes a turn, or who answers in it, and for which categories."""

    selection: Selection
    categories: Sequence[str]
    chosen: str


class DeclaredContexts(Protocol):
    """What an agent declares of its context: for all its engines, and for each of them."""

    @property
    def context(self) -> ChosenProvider | Assembly | None:
        """What gives context to every engine without its own."""
        ...

    @property
    def contexts(self) -> tuple[ChosenProvider | None, ...]:
        """What gives context to each engine."""
        ...


def contexts_of(
    agent: DeclaredContexts, usual: ChosenProvider | Assembly | None
) -> Sequence[ChosenProvider | Assembly | None]:
    """What gives each engine its context: its own, or else the usual."""
    return tuple(each or usual for each in agent.contexts) or (usual,)


class Brief(Protocol):
    """What a turn is about.

    `inputs` are the artifacts that woke the agent; `about` is what sources and selections look at:
    variables, values or a state. `hears_history` says that the agent reads what was said in the
    run, and `applies_context` that the outcome is settled with the context, so that it is
    assembled also for a turn whose frame is on record. `engines` answer in place of the agent's
    own, within `timeout` seconds.
    """

    turn: int
    agent: str
    correlation: str
    inputs: tuple[Artifact, ...]
    hears_history: bool
    applies_context: bool
    timeout: float | None
    engines: tuple[Engine, ...] | None

    @property
    def about(self) -> Any:
        """What sources and selections look at."""
        ...

    @property
    def choice(self) -> Choice | None:
        """The selection that is judged by how the turn ends."""
        ...

    def contexts(self, agent: DeclaredContexts) -> Sequence[ChosenProvider | Assembly | None]:
        """What gives each engine its context, or all of them."""
        ...

    async def request(
        self, prepared: PreparedRequest, context: AssembledContext
    ) -> PreparedRequest:
        """What the agent is told beside its instructions; runs users' code."""
        ...

    def listen(self, sinks: Sinks) -> Sinks:
        """The sinks of the answer, perhaps with one more listener."""
        ...

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """What comes of the answer, or of its error; runs users' code."""
        ...
