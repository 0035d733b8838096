"""Tell a run event by event, to people or as JSON."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

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
from turnloom.cli.questions import tidy, told
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.conversation.events import RouteDecided
from turnloom.explain.logic.describe import FLOW_WORDS, step_name
from turnloom.explain.logic.frames import Frames
from turnloom.explain.spec.text import indent, moment, one_line
from turnloom.flow import events as flow
from turnloom.flow.events import (
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepStarted,
)
from turnloom.guards.events import LoopDetectedFact, ScarcityChanged, WindowNeared
from turnloom.guards.logic.loops import describe_loop
from turnloom.guards.logic.windows import describe_window
from turnloom.hooks.events import (
    LifecycleToolError,
    LifecycleToolResult,
    MessageHooked,
    MessageHookFailed,
)
from turnloom.kernel.values import Json, as_data, as_object
from turnloom.log.events import RunResumed
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

# How many characters of a value are shown.
SHOWN = 120

# What somebody should look at.
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


# What says how a step, or an attempt of one, ended.
Stepped = flow.StepCompleted | flow.StepFailed | flow.StepRetried | flow.StepCompensated


def aside(event: Event) -> str:
    """An event in a line, or nothing if it is not worth one."""
    say = _BY_KIND.get(event.kind)
    return say(event.data) if say is not None else ""


def called(fact: agents.ToolCalled) -> str:
    """Which tool an agent calls, and with what."""
    given = as_object(fact.arguments) or {}
    arguments = ", ".join(f"{name}={as_data(value)}" for name, value in given.items())
    return f"{fact.agent} calls {fact.tool}({one_line(arguments, SHOWN)})"


def came_of(fact: agents.ToolReturned | agents.ToolFailed) -> str:
    """What came of a tool's call."""
    if isinstance(fact, agents.ToolReturned):
        return data(fact.result)
    return f"failed: {_fault(fact.error, fact.message)}"


def begun(fact: flow.StepStarted) -> str:
    """Which step is taken, and in which attempt if not in the first."""
    again = f", attempt {fact.attempt}" if fact.attempt > 1 else ""
    return f"{fact.step} makes up for {fact.undoes}" if fact.undoes else f"{step_name(fact)}{again}"


def stepped(fact: Stepped) -> str:
    """What came of a step."""
    match fact:
        case flow.StepRetried(error=error, message=message, due=due):
            when = f" at {moment(due)}" if due else ""
            return f"failed: {_fault(error, message)}; again{when}"
        case flow.StepCompleted(update=update) | flow.StepCompensated(update=update, error=""):
            return data(update) if update else "done"
        case flow.StepFailed() | flow.StepCompensated():
            what = fact.what if isinstance(fact, flow.StepFailed) else ""
            return f"{what} failed: {_fault(fact.error, fact.message)}".lstrip()


def data(value: Json) -> str:
    """A value as data, cut if it is long."""
    return one_line(as_data(value), SHOWN)


def _fault(error: str, message: str) -> str:
    return one_line(f"{error}: {message}" if message else error, SHOWN)


def _route(fact: RouteDecided) -> str:
    return f"{fact.source or 'start'} → {fact.target} ({fact.reason})"


def _opening(fact: agents.UserText) -> str:
    return "" if fact.author == USER else f"{fact.author}: {one_line(fact.text, 200)}"


def _unavailable(fact: ContextLoaded) -> str:
    lacking = [each for each in fact.values if each.note.startswith(UNAVAILABLE)]
    if not lacking:
        return ""
    reason = lacking[0].note.removeprefix(UNAVAILABLE)
    return f"without stored values of {', '.join(each.name for each in lacking)}: {reason}"


def _changed(fact: ContextChanged) -> str:
    value = "removed" if fact.removed else data(fact.value)
    return f"{fact.name}: {data(fact.previous)} → {value} ({fact.writer})"


def _not_written(fact: ContextRefused) -> str:
    return f"{fact.name} was not written by {fact.writer}: {one_line(fact.reason, SHOWN)}"


def _missed(fact: ContextMissed) -> str:
    given = f"{fact.key} = {data(fact.value)}"
    return f"{fact.name} was not set: {fact.tool} was answered {given} and did not write it"


def _ended(fact: agents.TurnFinished) -> str:
    return "" if fact.status == "done" else f"turn {fact.turn} of {fact.agent} {fact.status}"


def _refused(fact: agents.AnswerRefused) -> str:
    return f"an answer of {fact.by} was refused: {fact.reason}"


def _formless(fact: agents.OutputRefused) -> str:
    problem = one_line(fact.problem, SHOWN)
    return f"an answer of {fact.agent} was refused, as it is no {fact.model}: {problem}"


def _offered(fact: agents.ToolsOffered) -> str:
    if fact.error:
        return f"server {fact.server} offers nothing: {one_line(fact.error, SHOWN)}"
    names = ", ".join(tool.name for tool in fact.tools) or "no tools"
    return f"server {fact.server} offers {one_line(names, SHOWN)}"


def _ran(fact: LifecycleToolResult) -> str:
    if fact.status == "success":
        return f"{_hook(fact)} ran"
    return f"{_hook(fact)} was {fact.status}: {one_line(str(fact.result), SHOWN)}"


def _broke(fact: LifecycleToolError) -> str:
    return f"{_hook(fact)} failed: {_fault(fact.error, fact.message)}"


def _hook(fact: LifecycleToolResult | LifecycleToolError) -> str:
    when = f"{fact.trigger} of {fact.agent}" if fact.agent else fact.trigger
    return f"hook {fact.hook} ({when})"


def _message_hook(fact: MessageHooked | MessageHookFailed) -> str:
    return f"hook {fact.function} ({fact.hook_type} of {fact.agent})"


# What is told of a flow beside its steps, as explanations tell it.
_TOLD = (
    flow.StepRecovered,
    flow.StepHandled,
    flow.StepSkipped,
    flow.BranchTaken,
    flow.ForkOpened,
    flow.ForkFailed,
    flow.ForkJoined,
    flow.LoopEnded,
    flow.ApprovalDecided,
    flow.FlowStopped,
)

_BY_FACT: dict[type[Fact], Callable[[Any], str]] = {
    RouteDecided: _route,
    RunResumed: lambda fact: "resumed",
    ContextLoaded: _unavailable,
    ContextChanged: _changed,
    ContextRefused: _not_written,
    ContextMissed: _missed,
    ContextSuppressed: lambda fact: f"without {', '.join(fact.names)}: {fact.reason}",
    LifecycleToolResult: _ran,
    LifecycleToolError: _broke,
    MessageHooked: lambda fact: f"{_message_hook(fact)} ran",
    MessageHookFailed: lambda fact: (
        f"{_message_hook(fact)} failed: {_fault(fact.error, fact.message)}"
    ),
    ScarcityChanged: lambda fact: (
        f"the budget is {fact.level}: {fact.share:.0%} of {fact.resource} left"
    ),
    WindowNeared: describe_window,
    LoopDetectedFact: lambda fact: f"loop detected, {describe_loop(fact)}: {fact.strategy}",
    agents.UserText: _opening,
    agents.TurnFinished: _ended,
    agents.AnswerRefused: _refused,
    agents.OutputRefused: _formless,
    agents.ToolsOffered: _offered,
    agents.QuestionExpiredFact: lambda fact: fact.reason or "nobody answered in time",
    agents.TransferChosen: lambda fact: f"{fact.agent} hands over to {fact.target}",
    agents.SpeakerPicked: lambda fact: f"the model picks {fact.picked} of {', '.join(fact.among)}",
    **{fact: FLOW_WORDS[fact] for fact in _TOLD},
    agents.ChanceDrawn: lambda fact: f"chance draws {fact.drawn} of {', '.join(fact.among)}",
}
_BY_KIND = {fact.kind: say for fact, say in _BY_FACT.items()}


COLOURS = ("cyan", "magenta", "green", "blue", "yellow", "bright_cyan", "bright_magenta")
PROMPT = "you> "

# Where an answer comes from: the keyboard or the script of this session, or elsewhere.
Origin = Literal["typed", "script", "elsewhere"]

# How many messages a resumed session repeats.
RECAP = 4


class Narration(Protocol):
    """Tells what happens in a run, and asks the person at this terminal."""

    def recall(self, event: Event) -> None:
        """Take note of an event that was told before."""
        ...

    def hear(self, delta: Delta) -> None:
        """Take a piece of an answer that is being made."""
        ...

    def tell(self, event: Event, origin: Origin = "elsewhere") -> None:
        """Tell an event; `origin` says where it comes from, if it is an answer. One that was typed
        here stands on the screen already."""
        ...

    def present(self, question: Question) -> None:
        """Show what is asked, unless it stands on the screen already."""
        ...

    def remark(self, text: str) -> None:
        """Say something that helps to answer."""
        ...

    def prompt(self, label: str) -> None:
        """Ask for a line."""
        ...

    def withdraw(self) -> None:
        """Give up a prompt that nobody answered here."""
        ...

    def rest(self) -> None:
        """Leave nothing half said."""
        ...


class JsonLines:
    """Each event as one line of JSON on standard output; prompts go to standard error."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def recall(self, event: Event) -> None:
        """Nothing: what was told before is not told again."""

    def hear(self, delta: Delta) -> None:
        """Nothing: pieces are no events."""

    def tell(self, event: Event, origin: Origin = "elsewhere") -> None:
        """Print the event as it is stored."""
        self._terminal.emit(msgspec.json.encode(event))

    def present(self, question: Question) -> None:
        """Show what is asked on standard error."""
        if asked := told(question):
            self._terminal.tell(safe(asked))

    def remark(self, text: str) -> None:
        """Say it on standard error."""
        self._terminal.tell(safe(text))

    def prompt(self, label: str) -> None:
        """Ask on standard error."""
        self._terminal.tell(safe(label), end="")

    def withdraw(self) -> None:
        """End the line of the prompt."""
        self._terminal.tell("")

    def rest(self) -> None:
        """Nothing: lines of JSON are whole."""


class Story:
    """A run as a conversation; unless quiet, with what each agent saw and where the work went."""

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal = terminal
        self._is_live = terminal.out.is_terminal
        self._quiet = quiet
        self._frames = Frames()
        self._colours: dict[str, str] = {}
        self._open: dict[str, Question] = {}
        self._shown = ""
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
        """Repeat what was said last."""
        for message in () if self._quiet else self._frames.messages[-RECAP:]:
            self._aside(f"{message.author}: {one_line(message.text, 200)}")
        for question in self._open.values():
            self._ask(question)

    def hear(self, delta: Delta) -> None:
        """Show the piece to people who watch; who reads later reads whole lines."""
        if self._is_live:
            self._stream.hear(delta)

    def tell(self, event: Event, origin: Origin = "elsewhere") -> None:
        """Show the event, if it is one that people want to see."""
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
        """Show what is asked, unless nothing else was asked since."""
        if self._shown != question.id:
            self._ask(question)

    def remark(self, text: str) -> None:
        """Say it among the rest."""
        self._aside(text)

    def prompt(self, label: str) -> None:
        """Ask on standard output."""
        self.rest()
        self._terminal.show(safe(label, "bold"), end="")

    def withdraw(self) -> None:
        """End the line of the prompt."""
        self._terminal.show("")

    def rest(self) -> None:
        """End a line that is still open."""
        self._page.end()

    def _beside(self, event: Event) -> None:
        """Show what happens beside the conversation."""
        style = "yellow" if isinstance(event.data, TROUBLES) else "dim"
        match event.data:
            case FrameAssembled() as fact:
                self._aside(self._saw(fact))
            case ToolCalled() as fact:
                self._page.begin(event.id.removesuffix("?"), safe(f"  {called(fact)}", "dim"))
            case ToolReturned() | ToolFailed() as fact:
                key, outcome = event.id.rpartition(".")[0], f" → {came_of(fact)}"
                if self._page.go_on(key, safe(outcome, style)):
                    self._page.end()
                else:
                    self._aside(f"{fact.tool}{outcome}", style)
            case StepStarted() as fact:
                self._page.begin(f"s{fact.number}", safe(f"  {begun(fact)}", "dim"))
            case StepCompleted() | StepFailed() | StepRetried() | StepCompensated() as fact:
                self._step(f"s{fact.number}", fact, style)
            case _:
                if line := aside(event):
                    self._aside(line, style)

    def _step(self, key: str, fact: Stepped, style: str) -> None:
        """Show what came of a step, on its line if that is still open."""
        if self._page.go_on(key, safe(f" → {stepped(fact)}", style)):
            self._page.end()
        else:
            self._aside(f"{step_name(fact)} → {stepped(fact)}", style)

    def _aside(self, text: str, style: str = "dim") -> None:
        self._page.show(safe(indent(text, "  "), style))

    def _say(self, *parts: str | Text | tuple[str, str]) -> None:
        """Show a text whose further lines are moved in, so that none passes for ours."""
        whole = joined(*parts)
        lines = whole.split("\n", allow_blank=True)
        self._page.show(Text("\n  ").join(lines))

    def _ask(self, question: Question) -> None:
        self._shown = question.id
        if asked := told(question):
            self._say(asked)

    def _agent(self, fact: AgentText | AgentOutput) -> None:
        is_output = isinstance(fact, AgentOutput)
        if fact.hidden:
            if not self._quiet:
                self._aside(f"{fact.agent} {f'gave {fact.model}' if is_output else 'handed over'}")
        elif is_output:
            self._say(self._label(fact.agent), ": ", tidy(fact.output))
        elif not self._stream.complete(fact):
            self._say(self._label(fact.agent), ": ", fact.text)

    def _label(self, agent: str) -> Text:
        """The name of an agent, in the same colour throughout."""
        colour = self._colours.setdefault(agent, COLOURS[len(self._colours) % len(COLOURS)])
        return safe(agent, f"bold {colour}")

    def _saw(self, fact: FrameAssembled) -> str:
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
            f"turn {fact.turn}: {fact.agent} saw {_counted(count, 'segment')}{shown}, "
            f"{_counted(fact.history.count, 'message')}, {_counted(fact.tokens, 'token')}, "
            f"{len(withheld)} withheld"
        )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
