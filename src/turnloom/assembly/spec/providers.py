"""Messages, and the context providers that read them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast, overload

from turnloom.board.spec import Artifact, Public, Visibility
from turnloom.board.spec.queries import BoardHandle
from turnloom.errors import UsageError
from turnloom.kernel.sealed import sealed
from turnloom.kernel.values import Json


class Message(NamedTuple):
    """One thing that somebody said in a run, the event that holds it, and who may read it."""

    seq: int
    author: str
    text: str
    visibility: Visibility = Public()


class Transcript(Sequence[Message]):
    """What was said up to a moment: a view of the run's messages, not a copy."""

    __slots__ = ("_all", "_length")

    def __init__(self, messages: Sequence[Message], length: int | None = None) -> None:
        self._all = messages
        self._length = len(messages) if length is None else length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return [self._all[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._all[index % self._length]

    def __iter__(self) -> Iterator[Message]:
        for index in range(self._length):
            yield self._all[index]

    def closed(self) -> "Transcript":
        """The same, with no way to what else was said in the run."""
        return Transcript(_Closed(self), self._length)


class _Closed(Sequence[Message]):
    """Messages that are given one by one."""

    __slots__ = ("_give", "_length")

    def __init__(self, messages: Transcript) -> None:
        self._give: Callable[[Any], Any] = sealed(messages.__getitem__)
        self._length = len(messages)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return self._give(index)


class Piece(NamedTuple):
    """A segment before it is recorded: what it is, where it is from, and its exact text."""

    kind: str
    origin: str
    text: str
    digest: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class AgentRef:
    """Whose turn it is, as others may know it."""

    name: str
    description: str = ""
    labels: Set[str] = frozenset()
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class RunRef:
    """The run that a turn belongs to; `transcript` is what was said, as the agent may see it."""

    id: str
    workflow: str
    tenant: str
    user: str
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class TurnContext:
    """A turn as providers and components see it; `state` is theirs as long as the turn lasts."""

    run: RunRef
    state: dict[str, Json]
    board: BoardHandle
    turn: int


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a provider is asked: context for this agent, in this turn, about these inputs."""

    agent: AgentRef
    ctx: TurnContext
    inputs: tuple[Artifact, ...]
    board: BoardHandle
    correlation_id: str | None = None
    config: Mapping[str, Json] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class ContextSlice:
    """What a provider gives: items for the engines of the turn, and what it has to say about them.

    `inputs` is how the inputs of the turn are to be shown, where that is not as they are.
    """

    items: list[dict[str, Json]]
    metadata: dict[str, Json] = field(default_factory=dict[str, Any])
    inputs: list[dict[str, Json]] | None = None


class ContextProvider(Protocol):
    """Gives context for a request: an `async def`, or what has one as its `__call__`."""

    def __call__(self, request: ContextRequest, /) -> Awaitable[ContextSlice]:
        """The slice for this request."""
        ...


@dataclass(frozen=True, slots=True)
class ChosenProvider:
    """Which provider a declaration chose, and what is used in its place when it fails.

    Each of them has `timeout` seconds and gets `config` with its request. `name` is what it is
    called on record, unless that is the name of its class or function.

    Raises:
        UsageError: one of them cannot be called, or there is no time for it.
    """

    provider: ContextProvider
    fallback: ContextProvider | None = None
    timeout: float = 60.0
    config: Mapping[str, Json] = field(default_factory=dict[str, Any])
    name: str = ""

    def __post_init__(self) -> None:
        check_provider(self.provider, "The context provider")
        if self.fallback is not None:
            check_provider(self.fallback, "The fallback")
        if not self.timeout > 0:
            raise UsageError(
                f"A provider cannot answer in {self.timeout!r} seconds. Give `timeout` more than 0."
            )


def check_provider(provider: object, what: str) -> None:
    """See that something can be a provider.

    Raises:
        UsageError: it is a class, or cannot be called.
    """
    if isinstance(provider, type):
        raise UsageError(
            f"{what} is the class {provider.__name__!r}. Give one of it: {provider.__name__}(…)."
        )
    if not callable(provider):
        raise UsageError(
            f"{what} is {provider!r}, which cannot be called. "
            "Give an `async def` that takes a ContextRequest and gives a ContextSlice."
        )


def declared_of(provider: object) -> Mapping[str, object]:
    """What a provider says in its attribute `declared` that it was made with: part of the plan that
    runs are pinned to."""
    if isinstance(provider, type):
        return {}
    said = getattr(provider, "declared", None)
    return cast(Mapping[str, object], said) if isinstance(said, Mapping) else {}
