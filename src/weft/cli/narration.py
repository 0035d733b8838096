"""A run told event by event: to people, or as JSON to programs."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from rich.text import Text

from weft.agents.events import (
    AgentText,
    AnswerRefused,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
    UserText,
)
from weft.agents.spec import USER, Question
from weft.assembly.events import FrameAssembled
from weft.cli.terminal import Terminal, joined, safe
from weft.conversation.events import RouteDecided
from weft.explain.logic.frames import Frames
from weft.explain.spec.text import one_line
from weft.log.events import RunResumed
from weft.log.spec import Event
from weft.variables.events import ContextChanged

COLOURS = ("cyan", "magenta", "green", "blue", "yellow", "bright_cyan", "bright_magenta")
PROMPT = "you> "

# How many messages a resumed session repeats.
RECAP = 4


class Narration(Protocol):
    """Tells what happens in a run."""

    def recall(self, event: Event) -> None:
        """Take note of an event that was told before."""
        ...

    def tell(self, event: Event, *, typed_here: bool = False) -> None:
        """Tell an event; an answer that was typed here stands on the screen already."""
        ...

    def prompt(self, question: Question) -> None:
        """Ask the person at this terminal."""
        ...

    def withdraw(self) -> None:
        """Give up a prompt that nobody answered here."""
        ...


class JsonLines:
    """Each event as one line of JSON on standard output; prompts go to standard error."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def recall(self, event: Event) -> None:
        """Nothing: what was told before is not told again."""

    def tell(self, event: Event, *, typed_here: bool = False) -> None:
        """Print the event as it is stored."""
        self._terminal.emit(msgspec.json.encode(event))

    def prompt(self, question: Question) -> None:
        """Ask on standard error."""
        self._terminal.tell(
            joined(question.prompt, "\n" if question.prompt else "", PROMPT), end=""
        )

    def withdraw(self) -> None:
        """End the line of the prompt."""
        self._terminal.tell("")


class Story:
    """A run as a conversation; unless quiet, with what each agent saw and where the work went."""

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._frames = Frames()
        self._colours: dict[str, str] = {}
        self._asked = ""

    def recall(self, event: Event) -> None:
        """Take note of what later frames may refer to, and of what was asked last."""
        self._frames.take(event)
        if isinstance(event.data, QuestionAsked | QuestionAnswered):
            self._asked = getattr(event.data, "prompt", "")

    def recap(self) -> None:
        """Repeat what was said last."""
        for message in self._frames.messages[-RECAP:]:
            said = f"{message.author}: {one_line(message.text, 200)}"
            self._terminal.show(safe(f"  {said}", "dim"))
        if self._asked:
            self._say(self._asked)

    def tell(self, event: Event, *, typed_here: bool = False) -> None:
        """Show the event, if it is one that people want to see."""
        self._frames.take(event)
        if isinstance(event.data, QuestionAnswered):
            if not typed_here:
                self._say((PROMPT, "bold"), str(event.data.value))
        elif isinstance(event.data, AgentText):
            self._agent(event.data)
        elif isinstance(event.data, QuestionAsked):
            if event.data.prompt:
                self._say(event.data.prompt)
        elif not self._quiet and (aside := _ASIDES.get(event.kind)):
            if line := aside(self, event.data):
                self._terminal.show(safe(line, "dim"))

    def prompt(self, question: Question) -> None:
        """Ask on standard output; what is asked stands there already."""
        self._terminal.show(Text(PROMPT, "bold"), end="")

    def withdraw(self) -> None:
        """End the line of the prompt."""
        self._terminal.show("")

    def _say(self, *parts: str | tuple[str, str]) -> None:
        """Show a text whose further lines are moved in, so that none passes for ours."""
        whole = joined(*parts)
        lines = whole.split("\n", allow_blank=True)
        self._terminal.show(Text("\n  ").join(lines))

    def _agent(self, fact: AgentText) -> None:
        if not fact.hidden:
            self._say((fact.agent, f"bold {self.colour(fact.agent)}"), ": ", fact.text)
        elif not self._quiet:
            self._terminal.show(safe(f"  {fact.agent} handed over", "dim"))

    def colour(self, agent: str) -> str:
        """The colour of an agent, the same throughout."""
        return self._colours.setdefault(agent, COLOURS[len(self._colours) % len(COLOURS)])

    def saw(self, fact: FrameAssembled) -> str:
        """What an agent is shown, in one line."""
        sighted = self._frames.sighted(fact)
        segments, withheld = sighted or ((), ())
        names = [
            segment.origin.removeprefix("context_variables.")
            for segment in segments
            if segment.kind == "variable"
        ]
        count = len(segments) + bool(fact.history.count)
        shown = f" with {', '.join(names)}" if names else ""
        return (
            f"  turn {fact.turn}: {fact.agent} saw {_counted(count, 'segment')}{shown}, "
            f"{_counted(fact.history.count, 'message')}, {_counted(fact.tokens, 'token')}, "
            f"{len(withheld)} withheld"
        )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _route(story: Story, fact: RouteDecided) -> str:
    return f"  {fact.source or 'start'} → {fact.target} ({fact.reason})"


def _opening(story: Story, fact: UserText) -> str:
    return "" if fact.author == USER else f"  {fact.author}: {one_line(fact.text, 200)}"


def _changed(story: Story, fact: ContextChanged) -> str:
    return f"  {fact.name}: {fact.previous!r} → {fact.value!r} ({fact.writer})"


def _ended(story: Story, fact: TurnFinished) -> str:
    return "" if fact.status == "done" else f"  turn {fact.turn} of {fact.agent} {fact.status}"


def _resumed(story: Story, fact: RunResumed) -> str:
    return "  resumed"


def _refused(story: Story, fact: AnswerRefused) -> str:
    return f"  an answer of {fact.by} was refused: {fact.reason}"


_ASIDES: dict[str, Callable[[Story, Any], str]] = {
    FrameAssembled.kind: Story.saw,
    RouteDecided.kind: _route,
    UserText.kind: _opening,
    ContextChanged.kind: _changed,
    TurnFinished.kind: _ended,
    RunResumed.kind: _resumed,
    AnswerRefused.kind: _refused,
}
