"""The brief of a turn: its inputs, its context and how it settles, in every form."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from turnloom.agents.spec import Engine, PreparedRequest
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import Artifact
from turnloom.guards.spec import Selection
from turnloom.log.spec import Fact

# Receives text deltas of an answer; `None` when the answer restarts.
TextSink = Callable[[str | None], None]

# Returns the sink for the turn's model call of that number, from 1.
Sinks = Callable[[int], TextSink]


def discard(text: str | None) -> None:
    """Discard a text delta."""


class TurnOutcome(msgspec.Struct, frozen=True):
    """Result of an agent's turn: the error, if any, the facts of its last model call, and the
    context it was given. `cause` is the exception behind the error, if known."""

    error: str
    facts: Sequence[Fact] = ()
    context: AssembledContext = AssembledContext.empty()
    cause: Exception | None = None


class Settlement(NamedTuple):
    """Result of settling a turn: facts with their ids and actors; or an error, which fails the step
    and not the turn."""

    facts: Sequence[tuple[str, Fact, str]] = ()
    error: Exception | None = None


UNSETTLED = Settlement()


class Choice(NamedTuple):
    """A selection that chose the agent of a turn, or who answers in it, and for which
    categories."""

    selection: Selection
    categories: Sequence[str]
    chosen: str


class DeclaredContexts(Protocol):
    """The context that an agent declares: for all its engines, and for each of them."""

    @property
    def context(self) -> ChosenProvider | Assembly | None:
        """The context provider of every engine without one."""
        ...

    @property
    def contexts(self) -> tuple[ChosenProvider | None, ...]:
        """The context provider of each engine."""
        ...


def contexts_of(
    agent: DeclaredContexts, usual: ChosenProvider | Assembly | None
) -> Sequence[ChosenProvider | Assembly | None]:
    """The context provider of each engine, `usual` by default."""
    return tuple(each or usual for each in agent.contexts) or (usual,)


class Brief(Protocol):
    """The subject of a turn, and how it settles.

    `inputs` are the artifacts that woke the agent; `about` is the input of sources and selections:
    variables, values or a state. `hears_history` means that the agent reads the run's messages, and
    `applies_context` that settling needs the context, so that it is assembled even if the frame is
    already recorded. `engines` replace the agent's engines, within `timeout` seconds.
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
        """The input of sources and selections."""
        ...

    @property
    def choice(self) -> Choice | None:
        """The selection that is judged by the result of the turn."""
        ...

    def contexts(self, agent: DeclaredContexts) -> Sequence[ChosenProvider | Assembly | None]:
        """The context provider of each engine, or one for all."""
        ...

    async def request(
        self, prepared: PreparedRequest, context: AssembledContext
    ) -> PreparedRequest:
        """Complete the request to the model; runs user code."""
        ...

    def listen(self, sinks: Sinks) -> Sinks:
        """The sinks of the answer, with the brief's own listener if it has one."""
        ...

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """Turn the answer or its error into facts; runs user code."""
        ...
