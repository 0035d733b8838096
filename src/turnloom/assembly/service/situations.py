"""The situation of a turn: the inputs of its context, and its access to the world."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from turnloom.assembly.spec import ContextRequest, Message
from turnloom.assembly.spec.means import Search, no_search
from turnloom.board.logic.matching import ALWAYS
from turnloom.board.spec import Artifact, Reader
from turnloom.errors import ContextUnavailable
from turnloom.kernel.marks import neutral
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.variables.logic.exposure import VariableValues

# Runs an effect at most once per key, and returns the recorded facts.
OnRecord = Callable[[str, Effect], Awaitable[Sequence[Fact]]]

F = TypeVar("F", bound=Fact)


def as_it_is(value: Any) -> Any:
    """The same value."""
    return value


async def each_time(key: str, effect: Effect) -> Sequence[Fact]:
    """Run the effect every time; nothing is recorded."""
    return await effect()


@dataclass(frozen=True, slots=True)
class Situation:
    """A turn of an agent as its sources see it.

    `values` are the variables, `history` the messages. `request` is the request to providers, and
    `witnessed` grows with the artifacts that its board returns. `texts` are the run's texts by
    digest. `masked` removes secrets from a text, `received` does so for external text; `opened`
    returns recorded data as the agent may see it. `search` finds what the `reader` may see at
    `now`. `in_run` and `in_turn` record results, so that each effect runs once per run or turn.
    """

    turn: int = 1
    agent: str = ""
    state: Any = None
    values: VariableValues = field(default_factory=lambda: VariableValues({}, {}, {}))
    history: Sequence[Message] = ()
    request: ContextRequest | None = None
    witnessed: Sequence[Artifact] = ()
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    masked: Callable[[str], str] = str
    received: Callable[[str], str] = neutral
    opened: Callable[[Any], Any] = as_it_is
    search: Search = no_search
    reader: Reader = Reader()
    now: datetime = ALWAYS
    in_run: OnRecord = each_time
    in_turn: OnRecord = each_time


def expect(kind: type[F], fact: Fact) -> F:
    """The recorded fact, checked for its kind.

    Raises:
        ContextUnavailable: it has another kind.
    """
    if not isinstance(fact, kind):
        raise ContextUnavailable(
            f"Expected {kind.kind!r} in the log, found {fact.kind!r}: the declaration has changed "
            "since the run began. Start a new run."
        )
    return fact
