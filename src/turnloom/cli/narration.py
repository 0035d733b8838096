"""Narrate a run event by event, to people or as JSON."""

from typing import Literal, Protocol

import msgspec
from rich.text import Text

from turnloom.agents import events as agents
from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpiredFact,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from turnloom.agents.logic.folding import question_of
from turnloom.agents.spec import USER, Question
from turnloom.assembly.events import FrameAssembled
from turnloom.cli.forms import word
from turnloom.cli.page import AnswerStream, OutputPage
from turnloom.cli.questions import question_text, tidy
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.conversation.events import RouteDecided
from turnloom.explain.logic.describe import SAID, data, describe, describe_frame, outcome
from turnloom.explain.logic.frames import Frames
from turnloom.explain.spec.text import indent, one_line
from turnloom.flow import events as flow
from turnloom.flow.events import (
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepStarted,
)
from turnloom.guards.events import LoopDetectedFact, ScarcityChanged, WindowNeared
from turnloom.hooks.events import (
    LifecycleToolError,
    LifecycleToolResult,
    MessageHooked,
    MessageHookFailed,
)
from turnloom.log.events import RunForked, RunResumed, RunRetried
from turnloom.log.spec import Event, Fact
from turnloom.runtime.spec import Delta
from turnloom.variables.events import (
    UNAVAILABLE,
    ContextChanged,
    ContextLoaded,
    ContextMissed,
    ContextRefused,
    ContextSuppressed,
)

# Facts that deserve attention.
TROUBLES = (
    LifecycleToolError,
    MessageHookFailed,
    ContextRefused,
    ContextLoaded,
    ContextMissed,
    ContextSuppressed,
    LoopDetectedFact,
    WindowNeared,
    agents.AnswerRefused,
    agents.OutputRefused,
    agents.QuestionExpiredFact,
    agents.ToolFailed,
    flow.StepFailed,
    flow.StepRetried,
    flow.ForkFailed,
    flow.FlowStopped,
)


# Facts that get a line apart from messages, and apart from calls and steps.
_TOLD = (
    RouteDecided,
    RunResumed,
    RunRetried,
    RunForked,
    *TROUBLES,
    ContextChanged,
    LifecycleToolResult,
    MessageHooked,
    ScarcityChanged,
    agents.UserText,
    agents.TurnFinished,
    agents.ToolsOffered,
    agents.TransferChosen,
    agents.SpeakerPicked,
    agents.ChanceDrawn,
    flow.StepRecovered,
    flow.StepHandled,
    flow.StepSkipped,
    flow.BranchTaken,
    flow.ForkOpened,
    flow.ForkJoined,
    flow.LoopEnded,
    flow.ApprovalDecided,
)


def is_told(fact: Fact) -> bool:
    """Whether a fact is worth a line: of what happens all the time, only what is unusual."""
    match fact:
        case ContextLoaded(values=values):
            return any(each.note.startswith(UNAVAILABLE) for each in values)
        case agents.TurnFinished(status=status):
            return status != "done"
        case agents.UserText(author=author):
            return author != USER
        case _:
            return isinstance(fact, _TOLD)


COLOURS = ("cyan", "magenta", "green", "blue", "yellow", "bright_cyan", "bright_magenta")
PROMPT = "you> "

# Where an answer comes from: the keyboard or the script of this session, or elsewhere.
Origin = Literal["typed", "script", "elsewhere"]

# Messages that a resumed session repeats.
RECAP = 4


class Narration(Protocol):
    """Narrates a run, and prompts the person at this terminal."""

    def recall(self, event: Event) -> None:
        """Note an event that was shown before."""
        ...

    def hear(self, delta: Delta) -> None:
        """Receive a text delta."""
        ...

    def tell(self, event: Event, origin: Origin = "elsewhere") -> None:
        """Show an event; `origin` says where an answer comes from. One that was typed here is on
        the screen already."""
        ...

    def present(self, question: Question) -> None:
        """Show a question, unless it is on the screen already."""
        ...

    def remark(self, text: str) -> None:
        """Show a hint for the answer."""
        ...

    def prompt(self, label: str) -> None:
        """Prompt for a line."""
        ...

    def withdraw(self) -> None:
        """Withdraw a prompt that was not answered here."""
        ...

    def rest(self) -> None:
        """Finish an open line."""
        ...


class JsonLines:
    """Prints each event as one line of JSON on standard output; prompts go to standard error."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def recall(self, event: Event) -> None:
        """Nothing to do: earlier events are not shown again."""

    def hear(self, delta: Delta) -> None:
        """Nothing to do: deltas are not events."""

    def tell(self, event: Event, origin: Origin = "elsewhere") -> None:
        """Print the event as it is stored."""
        self._terminal.emit(msgspec.json.encode(event))

    def present(self, question: Question) -> None:
        """Show a question on standard error."""
        if asked := question_text(question):
            self._terminal.tell(safe(asked))

    def remark(self, text: str) -> None:
        """Print it on standard error."""
        self._terminal.tell(safe(text))

    def prompt(self, label: str) -> None:
        """Prompt on standard error."""
        self._terminal.tell(safe(label), end="")

    def withdraw(self) -> None:
        """End the line of the prompt."""
        self._terminal.tell("")

    def rest(self) -> None:
        """Nothing to do: lines of JSON are whole."""


class Story:
    """Shows a run as a conversation; unless quiet, also what each agent saw and where the work
    went."""

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal = terminal
        self._is_live = terminal.out.is_terminal
        self._quiet = quiet
        self._frames = Frames()
        self._colours: dict[str, str] = {}
        self._open: dict[str, Question] = {}
        self._shown = ""
        self._refused: set[str] = set()
        self._page = OutputPage(terminal)
        self._stream = AnswerStream(self._page, self._label)

    def recall(self, event: Event) -> None:
        """Take note of what later events may refer to, and of what is asked."""
        self._frames.take(event)
        match event.data:
            case QuestionAsked() as asked:
                self._open[asked.question] = question_of(asked, event.seq)
            case QuestionAnswered(question=id) | QuestionExpiredFact(question=id):
                self._open.pop(id, None)
            case _:
                self._stream.follow(event.data)

    def recap(self) -> None:
        """Repeat the last messages."""
        for message in () if self._quiet else self._frames.messages[-RECAP:]:
            self._aside(f"{message.author}: {one_line(message.text, SAID)}")
        for question in self._open.values():
            self._ask(question)

    def hear(self, delta: Delta) -> None:
        """Show the delta at a terminal; a file gets whole lines."""
        if self._is_live:
            self._stream.hear(delta)

    def tell(self, event: Event, origin: Origin = "elsewhere") -> None:
        """Show the event, if people want to see it."""
        self._frames.take(event)
        match event.data:
            case QuestionAnswered(value=value, by=by):
                if origin != "typed":
                    label = PROMPT if origin == "script" else f"{by}, elsewhere> "
                    self._say((label, "bold"), word(value))
            case QuestionAsked() as asked:
                self._ask(question_of(asked, event.seq))
            case AgentText() | AgentOutput() as fact:
                self._agent(fact)
            case _:
                self._stream.follow(event.data)
                if not self._quiet:
                    self._beside(event)

    def present(self, question: Question) -> None:
        """Show a question, unless it was the last one shown."""
        if self._shown != question.id:
            self._ask(question)

    def remark(self, text: str) -> None:
        """Print it on standard output."""
        self._aside(text)

    def prompt(self, label: str) -> None:
        """Prompt on standard output."""
        self.rest()
        self._terminal.show(safe(label, "bold"), end="")

    def withdraw(self) -> None:
        """End the line of the prompt."""
        self._terminal.show("")

    def rest(self) -> None:
        """End an open line."""
        self._page.end()

    def _beside(self, event: Event) -> None:
        """Show events apart from the conversation."""
        style = "yellow" if isinstance(event.data, TROUBLES) else "dim"
        match event.data:
            case FrameAssembled() as fact:
                self._aside(self._saw(fact))
            case ToolCalled() as fact:
                self._page.begin(event.id.removesuffix("?"), safe(f"  {describe(fact)}", "dim"))
            case ToolReturned() | ToolFailed() as fact:
                self._end(event.id.rpartition(".")[0], fact, style)
            case StepStarted() as fact:
                self._page.begin(f"s{fact.number}", safe(f"  {describe(fact)}", "dim"))
            case StepCompleted() | StepFailed() | StepRetried() | StepCompensated() as fact:
                self._end(f"s{fact.number}", fact, style)
            case fact if is_told(fact):
                self._note(fact, style)
            case _:
                pass

    def _note(self, fact: Fact, style: str) -> None:
        """Show a fact; a refused write once, as a function that fails does so at every event."""
        text = describe(fact)
        if isinstance(fact, ContextRefused):
            if text in self._refused:
                return
            self._refused.add(text)
        self._aside(text, style)

    def _end(self, key: str, fact: Fact, style: str) -> None:
        """Show how a call or a step ended, on its line if that is still open."""
        is_value = isinstance(fact, ToolReturned)
        ended = data(fact.result) if is_value else outcome(fact)
        if self._page.extend(key, safe(f" → {ended}", style)):
            self._page.end()
        else:
            self._aside(describe(fact), style)

    def _aside(self, text: str, style: str = "dim") -> None:
        self._page.show(safe(indent(text, "  "), style))

    def _say(self, *parts: str | Text | tuple[str, str]) -> None:
        """Show a text with its further lines indented, so that none looks like ours."""
        whole = joined(*parts)
        lines = whole.split("\n", allow_blank=True)
        self._page.show(Text("\n  ").join(lines))

    def _ask(self, question: Question) -> None:
        self._shown = question.id
        if asked := question_text(question):
            self._say(asked)

    def _agent(self, fact: AgentText | AgentOutput) -> None:
        is_output = isinstance(fact, AgentOutput)
        if fact.hidden:
            if not self._quiet:
                self._aside(f"{fact.agent} {f'gave {fact.model}' if is_output else 'handed off'}")
        elif is_output:
            self._say(self._label(fact.agent), ": ", tidy(fact.output))
        elif not self._stream.complete(fact):
            self._say(self._label(fact.agent), ": ", fact.text)

    def _label(self, agent: str) -> Text:
        """The name of an agent, always in the same colour."""
        colour = self._colours.setdefault(agent, COLOURS[len(self._colours) % len(COLOURS)])
        return safe(agent, f"bold {colour}")

    def _saw(self, fact: FrameAssembled) -> str:
        """Describe the frame of an agent in one line."""
        view = self._frames.view_of(fact)
        segments, withheld = view or ((), ())
        return describe_frame(fact, segments, withheld)
