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
    """A message of a run, the position of its event, and its visibility."""

    seq: int
    author: str
    text: str
    visibility: Visibility = Public()


class Transcript(Sequence[Message]):
    """The messages up to a moment: a view of the run's messages, not a copy."""

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
        """The same messages, without access to the rest of the run's."""
        return Transcript(_Closed(self), self._length)


class _Closed(Sequence[Message]):
    """Messages behind a sealed accessor."""

    __slots__ = ("_give", "_length")

    def __init__(self, messages: Transcript) -> None:
        self._give: Callable[[Any], Any] = sealed(messages.__getitem__)
        self._length = len(messages)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return self._give(index)


class Piece(NamedTuple):
    """A segment before it is recorded: its kind, origin and exact text."""

    kind: str
    origin: str
    text: str
    digest: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class AgentRef:
    """The agent of a turn, as providers see it."""

    name: str
    description: str = ""
    labels: Set[str] = frozenset()
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class RunRef:
    """The run of a turn; `transcript` has the messages that the agent may see."""

    id: str
    workflow: str
    tenant: str
    user: str
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class TurnContext:
    """A turn as providers and components see it; they may use `state` during the turn."""

    run: RunRef
    state: dict[str, Json]
    board: BoardHandle
    turn: int


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A request to a provider: the agent, turn and inputs that need context."""

    agent: AgentRef
    ctx: TurnContext
    inputs: tuple[Artifact, ...]
    board: BoardHandle
    correlation_id: str | None = None
    config: Mapping[str, Json] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class ContextSlice:
    """The result of a provider: items for the engines of the turn, and metadata.

    `inputs` replaces the inputs of the turn as shown, if set.
    """

    items: list[dict[str, Json]]
    metadata: dict[str, Json] = field(default_factory=dict[str, Any])
    inputs: list[dict[str, Json]] | None = None


class ContextProvider(Protocol):
    """Provides context for a request: an `async def`, or an object with an async `__call__`."""

    def __call__(self, request: ContextRequest, /) -> Awaitable[ContextSlice]:
        """Return the slice for this request."""
        ...


@dataclass(frozen=True, slots=True)
class ChosenProvider:
    """A declared provider and its fallback.

    Each has `timeout` seconds and receives `config` with its request. `name` is its name in the
    log, by default that of its class or function.

    Raises:
        UsageError: one of them is not callable, or `timeout` is not positive.
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
                f"`timeout` of a provider must be greater than 0, not {self.timeout!r}."
            )


def check_provider(provider: object, what: str) -> None:
    """Check that an object can be a provider.

    Raises:
        UsageError: it is a class, or not callable.
    """
    if isinstance(provider, type):
        raise UsageError(
            f"{what} is the class {provider.__name__!r}. Pass an instance: {provider.__name__}(…)."
        )
    if not callable(provider):
        raise UsageError(
            f"{what} {provider!r} is not callable. "
            "Pass an `async def` that takes a ContextRequest and returns a ContextSlice."
        )


def declared_of(provider: object) -> Mapping[str, object]:
    """The arguments of a provider, from its attribute `declared`: part of the plan that runs are
    pinned to."""
    if isinstance(provider, type):
        return {}
    said = getattr(provider, "declared", None)
    return cast(Mapping[str, object], said) if isinstance(said, Mapping) else {}
