"""The situation of a turn: what its context is made from, and through whom the world is asked."""

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

# Does something at most once under a key, and gives what is on record of it.
OnRecord = Callable[[str, Effect], Awaitable[Sequence[Fact]]]

F = TypeVar("F", bound=Fact)


def as_it_is(value: Any) -> Any:
    """The same value."""
    return value


async def each_time(key: str, effect: Effect) -> Sequence[Fact]:
    """Do it, whatever was done before: there is no record."""
    return await effect()


@dataclass(frozen=True, slots=True)
class Situation:
    """A turn of an agent as its sources see it.

    `values` are the variables, `history` what was said. `request` is what providers are asked, and
    `witnessed` grows with what its board gives out. `texts` has, by digest, what the run holds, and
    `masked` takes out of a text what must not be written, and `received` does so with one from
    outside; `opened` gives recorded data as the agent may see it. `search` finds what the `reader`
    may see at the moment `now`, and nothing else is shown. `in_run` and `in_turn` put on record
    what was found, so that nobody looks again in the same run or turn.
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
    """A fact of the kind that must be on record.

    Raises:
        ContextUnavailable: it is another.
    """
    if not isinstance(fact, kind):
        raise ContextUnavailable(
            f"{fact.kind!r} is on record where {kind.kind!r} must be: what is declared has changed "
            "since the run began. Start another run."
        )
    return fact
