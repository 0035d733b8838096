"""Standard output as a page whose last line may be open, and streamed answers on it."""

from collections import deque
from collections.abc import Callable

from rich.console import RenderableType
from rich.text import Text

from turnloom.agents.events import AgentText, ModelAnswered, ModelCalled, ModelFailed
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.runtime.spec import Delta


class OutputPage:
    """Standard output: whole lines, and perhaps an open one at the end."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._open: object = None

    def show(self, what: RenderableType) -> None:
        """Show something on its own lines."""
        self.end()
        self._terminal.show(what)

    def begin(self, key: object, piece: Text) -> None:
        """Begin a line that can be continued by its key."""
        self.end()
        self._terminal.write(piece)
        self._open = key

    def extend(self, key: object, piece: Text) -> bool:
        """Continue the line of a key; returns whether it was still open."""
        if self._open != key:
            return False
        self._terminal.write(piece)
        return True

    def end(self) -> None:
        """End the open line."""
        if self._open is not None:
            self._open = None
            self._terminal.show("")


class AnswerStream:
    """Answers while they are made: deltas are shown once the event of their call has been shown.

    The driver is ahead of its followers, so deltas may arrive early.
    """

    def __init__(self, page: OutputPage, label: Callable[[str], Text]) -> None:
        self._page = page
        self._label = label
        self._call = (0, 0)
        self._is_over = False
        self._shown = ""
        self._early: deque[Delta] = deque()

    def hear(self, delta: Delta) -> None:
        """Take a delta, and show it when its call has been shown."""
        self._early.append(delta)
        self._catch_up()

    def follow(self, fact: object) -> None:
        """Note a model call: its deltas may be shown from its beginning to its end."""
        if isinstance(fact, ModelCalled):
            turn, number = self._call
            self._call = (fact.turn, number + 1 if fact.turn == turn else 1)
            self._is_over, self._shown = False, ""
            self._catch_up()
        elif isinstance(fact, ModelAnswered | ModelFailed):
            self._is_over = True

    def complete(self, fact: AgentText) -> bool:
        """Show what is missing of a text; returns whether all of it is on the screen then."""
        rest = fact.text.removeprefix(self._shown)
        if len(rest) + len(self._shown) != len(fact.text):
            return False
        whole = self._page.extend(self._call, _moved_in(rest))
        self._page.end()
        return whole

    def _catch_up(self) -> None:
        while self._early and (self._early[0].turn, self._early[0].call) <= self._call:
            delta = self._early.popleft()
            if (delta.turn, delta.call) == self._call and not self._is_over:
                self._put(delta)

    def _put(self, delta: Delta) -> None:
        if delta.offset == 0:
            self._shown = ""
            self._page.begin(self._call, joined(self._label(delta.agent), ": "))
        # A delta without those before it is useless: the whole text will follow.
        in_place = delta.offset == len(self._shown)
        if in_place and self._page.extend(self._call, _moved_in(delta.text)):
            self._shown += delta.text


def _moved_in(text: str) -> Text:
    """A delta with its further lines indented, so that none looks like ours."""
    return safe(text.replace("\n", "\n  "))
