"""Where a run meets what is outside it: its effects, their order, and deadlines."""

from asyncio import timeout
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from turnloom.agents.events import QuestionAnswered, QuestionAsked
from turnloom.agents.spec import Task
from turnloom.board.ports import ArtifactStore
from turnloom.kernel.contained import NamedError
from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.values import Json
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.runs.actions import Action
from turnloom.variables.events import ContextChanged

T = TypeVar("T")

# The scope of what the run itself decides, outside turns and steps.
RUN = ""


class CallFailed(Exception):
    """A call raised `error`; `facts` are what it wrote before."""

    def __init__(self, error: Exception, facts: Sequence[Fact]) -> None:
        super().__init__(str(error))
        self.error = error
        self.facts = facts


class RecordedError(NamedError):
    """An error that is known from the log only: its name, message and stack, and the path that
    handled it."""

    def __init__(self, name: str, message: str, stack: str = "", handler: str = "") -> None:
        super().__init__(name, message)
        self.stack = stack
        self.handler = handler


class RecordedFailure(Interrupted):
    """Ends the answer of a turn of which the log has only the error."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class CallResult(NamedTuple):
    """What a recorded call left: its questions and their answers, its writes, other facts, and its
    result or its error."""

    dialogue: Sequence[tuple[QuestionAsked, QuestionAnswered]] = ()
    writes: Sequence[ContextChanged] = ()
    notes: Sequence[Fact] = ()
    value: Any = None
    error: RecordedError | None = None


class GivenResult(NamedTuple):
    """The result that a person gave for a call."""

    value: Json


class EffectRefused(Exception):
    """A call was not made: the original did not make it, and it was not allowed."""


# What becomes of a delivery between runs.
DeliveryVerdict = Literal["live", "recorded", "refused"]


class RunOrigin(Protocol):
    """What a run that was forked, or is done again, makes of its original."""

    async def judge(self, effect: str, what: str) -> CallResult | GivenResult | None:
        """What stands in for a call; None if the call is made.

        Raises:
            Parked: the run's user is asked.
            EffectRefused: it is not made, and nothing stands in for it.
        """
        ...

    async def judge_delivery(self, effect: str, request: str, what: str) -> DeliveryVerdict:
        """What becomes of a delivery to another run.

        Raises:
            Parked: the run's user is asked.
        """
        ...

    def board(self, artifacts: ArtifactStore) -> ArtifactStore:
        """The board as the run sees it."""
        ...


class CallLimiter(Protocol):
    """Limits model calls of all runs together."""

    def hold(self, journal: Any, key: str, task: Task) -> AbstractAsyncContextManager[None]:
        """Make a model call of a journal's run while the context is open, once its limit allows it.

        Raises:
            Waiting: it takes longer than a moment, and the run is parked.
        """
        ...


class World(Protocol):
    """Everything that a journal's run does outside its own log passes here."""

    def perform(self, key: str, effect: Effect, scope: str) -> Awaitable[Sequence[Fact]]:
        """The facts that an effect leaves under a key. What it records meanwhile has ids in its
        scope.

        Raises:
            Parked: it asked a person.
            CallFailed: a step failed.
        """
        ...

    async def send(self, effect: Callable[[], Any]) -> None:
        """Perform an effect that leaves nothing in the log."""
        ...

    async def reach(self, scope: str) -> None:
        """Wait until the next event of the log is one of a scope. Work awaits this before it
        records something after other work may have run."""
        ...

    async def decide(self, decide: Callable[[], Action | None]) -> Action | None:
        """The next action of the run, decided when it is the run's turn."""
        ...

    def answer(self, scope: str, make: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        """The answer of a turn.

        Raises:
            RecordedFailure: the turn failed and left only its error.
        """
        ...

    def deadline(self, scope: str, seconds: float | None) -> AbstractAsyncContextManager[Any]:
        """A context that raises `TimeoutError` in the work of a scope that takes too long."""
        ...


class Unlimited:
    """Limits no call."""

    def hold(self, journal: Any, key: str, task: Task) -> AbstractAsyncContextManager[None]:
        """Make a model call now."""
        return nullcontext()


class PresentWorld:
    """The world as it is: effects are performed, and nothing waits."""

    def perform(self, key: str, effect: Effect, scope: str) -> Awaitable[Sequence[Fact]]:
        """The facts of an effect, which is performed now."""
        return effect()

    async def send(self, effect: Callable[[], Any]) -> None:
        """Perform an effect that leaves nothing in the log."""
        given = effect()
        if given is not None:
            await given

    async def reach(self, scope: str) -> None:
        """Continue: work records whenever it gets to it."""

    async def decide(self, decide: Callable[[], Action | None]) -> Action | None:
        """The next action of the run, decided now."""
        return decide()

    def answer(self, scope: str, make: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        """The answer of a turn; whatever fails is raised where it fails."""
        return make()

    def deadline(self, scope: str, seconds: float | None) -> AbstractAsyncContextManager[Any]:
        """A timeout by the clock."""
        return timeout(seconds)


PRESENT = PresentWorld()
UNLIMITED = Unlimited()
