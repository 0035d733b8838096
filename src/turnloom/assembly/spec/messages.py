"""Messages, and pieces of context before they are recorded."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from turnloom.board.spec import Public, Visibility
from turnloom.kernel.sealed import sealed


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
