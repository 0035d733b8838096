"""The steps of a turn: calls, writes, questions and effects."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from turnloom.agents.spec import ToolCall, Usage
from turnloom.explain.spec.board import (
    ArtifactEntry,
    ChoiceEntry,
    ContextEntry,
    FailedProviderEntry,
    OfferEntry,
    ProviderEntry,
)
from turnloom.explain.spec.text import counted, duration, moment, one_line
from turnloom.kernel.values import Json, as_data, preview

# Characters of a value or text shown on a line.
LINE = 200


def data(value: Json) -> str:
    """A value as JSON on one line."""
    return one_line(as_data(value), LINE)


class TextEntry(msgspec.Struct, frozen=True, tag="text"):
    """A text of the agent; `hidden` from the user if it is a control word."""

    seq: int
    text: str
    hidden: bool

    @property
    def says(self) -> str:
        """The text as one line."""
        return f"said{_hidden(self.hidden)}: {one_line(self.text, LINE)}"


class AddedTextEntry(msgspec.Struct, frozen=True, tag="added by engine"):
    """Texts that the engine added to the frame and the exchanges."""

    seq: int
    texts: tuple[str, ...]

    @property
    def says(self) -> str:
        """The added texts as JSON."""
        return f"added by engine: {', '.join(map(data, self.texts))}"


class EngineToolEntry(msgspec.Struct, frozen=True, tag="called by engine"):
    """A call of a tool that belongs to the engine, with its result or error."""

    seq: int
    tool: str
    arguments: Json
    result: Json
    error: str

    @property
    def says(self) -> str:
        """Tool, arguments and result, as one line."""
        came = f"failed: {one_line(self.error, LINE)}" if self.error else f"→ {data(self.result)}"
        return f"called by engine: {self.tool} {data(self.arguments)} {came}"


class OutputEntry(msgspec.Struct, frozen=True, tag="output"):
    """A valid structured output of the agent."""

    seq: int
    model: str
    output: Json
    hidden: bool

    @property
    def says(self) -> str:
        """The output as one line."""
        return f"gave {self.model}{_hidden(self.hidden)}: {data(self.output)}"


class RefusedOutputEntry(msgspec.Struct, frozen=True, tag="refused output"):
    """An answer that did not match the required output type."""

    seq: int
    model: str
    raw: str
    problem: str

    @property
    def says(self) -> str:
        """The problem and the answer, as one line."""
        problem, raw = one_line(self.problem, LINE), one_line(self.raw, LINE)
        return f"refused, not a valid {self.model}: {problem}; answer: {raw}"


class ChangeEntry(msgspec.Struct, frozen=True, tag="change"):
    """A changed or removed value of a variable."""

    seq: int
    name: str
    previous: Json
    value: Json
    writer: str
    removed: bool = False

    @property
    def says(self) -> str:
        """The change as one line: old value, new value, writer."""
        now = "removed" if self.removed else preview(self.value)
        return f"{self.name}: {preview(self.previous)} → {now} by {self.writer}"


class RefusedWriteEntry(msgspec.Struct, frozen=True, tag="refused write"):
    """A refused write to a variable."""

    seq: int
    name: str
    writer: str
    reason: str

    @property
    def says(self) -> str:
        """The refusal as one line: variable, writer and reason."""
        return f"{self.name}: write by {self.writer} refused: {one_line(self.reason, LINE)}"


class MissedWriteEntry(msgspec.Struct, frozen=True, tag="missed write"):
    """A variable that a tool did not set although the answer contained its value."""

    seq: int
    name: str
    tool: str
    key: str
    value: Json

    @property
    def says(self) -> str:
        """The omission as one line."""
        return (
            f"{self.name}: not set by {self.tool}, but answered: {self.key} = {preview(self.value)}"
        )


class EffectEntry(msgspec.Struct, frozen=True, tag="effect"):
    """A recorded effect, which is not repeated when its call is resumed."""

    seq: int
    name: str
    result: Json

    @property
    def says(self) -> str:
        """The effect and its result, as one line."""
        return f"effect {self.name}: {data(self.result)}"


class RetryEntry(msgspec.Struct, frozen=True, tag="retry"):
    """The failed `n`th attempt of a model call, which was retried after `pause` seconds."""

    seq: int
    n: int
    error: str
    message: str
    pause: float

    @property
    def says(self) -> str:
        """The error and the pause before the next attempt, as one line."""
        fault = one_line(f"{self.error}: {self.message}", LINE)
        return f"attempt {self.n} failed, next one after {duration(self.pause)}: {fault}"


class QuestionEntry(msgspec.Struct, frozen=True, tag="question"):
    """A question and its status: `answered`, `expired` or `open`."""

    seq: int
    question: str
    tool: str
    to: str
    prompt: str
    payload: Json
    status: str
    by: str = ""
    at: datetime | None = None
    value: Json = None
    waited: float | None = None

    @property
    def says(self) -> str:
        """The question, its answer, and the time it took, as one line."""
        words = f" {preview(self.prompt)}" if self.prompt else ""
        asked = f"asked {self.to or 'a person'}{words}"
        if self.status == "open":
            return f"{asked}, and waits"
        ended = f"{moment(self.at)}, after {duration(self.waited)}" if self.at else ""
        if self.status == "expired":
            return f"{asked}: no answer until {ended}"
        return f"{asked}: {self.by} answered {data(self.value)} at {ended}"


class StackEntry(msgspec.Struct, frozen=True, tag="frame"):
    """A stack frame of workflow code in which a call failed; the innermost comes last."""

    seq: int
    frame: str

    @property
    def says(self) -> str:
        """The stack frame as one line."""
        return f"raised in {one_line(self.frame, LINE)}"


class EventEntry(msgspec.Struct, frozen=True, tag="event"):
    """Any other event during the turn."""

    seq: int
    kind: str
    what: str

    @property
    def says(self) -> str:
        """The event as one line."""
        return f"{self.kind}: {self.what}" if self.what != self.kind else self.kind


OnBoard = ProviderEntry | FailedProviderEntry | OfferEntry | ChoiceEntry
CallDetail = (
    EngineToolEntry | AddedTextEntry | TextEntry | OutputEntry | RefusedOutputEntry | RetryEntry
)
Detail = (
    CallDetail
    | ChangeEntry
    | RefusedWriteEntry
    | MissedWriteEntry
    | EffectEntry
    | QuestionEntry
    | StackEntry
    | EventEntry
    | OnBoard
)


def _hidden(hidden: bool) -> str:
    return " (hidden from the user)" if hidden else ""


def _called(tool: str, arguments: Json) -> str:
    return f"{tool} {data(arguments)}" if arguments else tool


class ModelCallEntry(msgspec.Struct, frozen=True, tag="model call"):
    """The `n`th model call, with the frame and the number of exchanges `given`.

    `outcome` is `answered`, `failed`, or `open` without an answer yet. `calls` are the requested
    tool calls. `part` names the engine or try, if there are several; `model` is the model that
    answered, if the engine reports it.
    """

    seq: int
    n: int
    engine: str
    request: str
    given: int
    outcome: str
    seconds: float | None
    usage: Usage
    calls: tuple[ToolCall, ...]
    error: str
    within: tuple[Detail, ...]
    part: str = ""
    model: str = ""

    @property
    def says(self) -> str:
        """Engine, outcome, usage and requested tools, as one line."""
        also = f" with {counted(self.given, 'exchange')}" if self.given else ""
        took = f" in {duration(self.seconds)}" if self.seconds is not None else ""
        wants = ", ".join(_called(call.tool, call.arguments) for call in self.calls)
        calls = f", wants {wants}" if wants else ""
        error = f": {one_line(self.error, LINE)}" if self.error else ""
        part = f"{self.part}, " if self.part else ""
        model = f" ({one_line(self.model)})" if self.model else ""
        asked = f"{part}model call {self.n}: {self.engine}{model}{also} {self.outcome}"
        return f"{asked}{took} ({self.usage}){calls}{error}"


class ToolEntry(msgspec.Struct, frozen=True, tag="tool"):
    """A call of a tool, requested by a model call or made with the agent's output (`auto`).

    `outcome` is `returned`, `failed`, or `open` while the call runs or waits. `waited` is the part
    of `seconds` spent waiting for people.
    """

    seq: int
    tool: str
    call: int
    auto: bool
    arguments: Json
    outcome: str
    result: Json
    error: str
    seconds: float | None
    waited: float
    within: tuple[Detail, ...]
    part: str = ""

    @property
    def says(self) -> str:
        """Tool, arguments and result, as one line."""
        gave = {"returned": f"returned {data(self.result)}", "open": "is open"}
        ended = gave.get(self.outcome, f"failed: {one_line(self.error, LINE)}")
        how = " with the output" if self.auto else ""
        part = f"{self.part}, " if self.part else ""
        return f"{part}tool {_called(self.tool, self.arguments)}{how} {ended}{self._took()}"

    def _took(self) -> str:
        if self.seconds is None:
            return ""
        waited = f", {duration(self.waited)} of it waiting" if self.waited else ""
        return f" ({duration(self.seconds)}{waited})"


class HookEntry(msgspec.Struct, frozen=True, tag="hook"):
    """A hook; its `status` is `success`, `error`, `skipped`, or `open` while it runs or waits.

    `restored`: it ran again to rebuild objects lost with another process.
    """

    seq: int
    hook: str
    trigger: str
    status: str
    attempts: int
    elapsed_ms: float | None
    waited: float
    restored: bool
    result: Json
    error: str
    within: tuple[Detail, ...]

    @property
    def says(self) -> str:
        """The hook and its outcome, as one line."""
        name = f"hook {self.hook} ({self.trigger}{', restored' if self.restored else ''})"
        if self.status == "skipped":
            return f"{name} skipped: {self.result}"
        took = [] if self.elapsed_ms is None else [duration(self.elapsed_ms / 1000)]
        took += [f"{self.attempts} attempts"] if self.attempts > 1 else []
        took += [f"waited {duration(self.waited)}"] if self.waited else []
        how = f" ({', '.join(took)})" if took else ""
        gave = one_line(self.error, LINE) if self.error else data(self.result)
        gave = f": {gave}" if self.error or self.result is not None else ""
        return f"{name} {self.status}{how}{gave}"


class TransferEntry(msgspec.Struct, frozen=True, tag="transfer"):
    """A handoff that the agent's model chose."""

    seq: int
    rule: int
    target: str
    within: tuple[Detail, ...] = ()

    @property
    def says(self) -> str:
        """The chosen rule and its target, as one line."""
        return f"chose the handoff to {self.target} (rule {self.rule})"


Step = (
    ModelCallEntry | ToolEntry | HookEntry | TransferEntry | ContextEntry | ArtifactEntry | Detail
)


def lines_of(steps: Sequence[Step]) -> list[str]:
    """Steps and their details, one line each."""
    lines: list[tuple[str, int, str]] = []
    for step in steps:
        lines.append(("", step.seq, step.says))
        lines += [("  ", each.seq, each.says) for each in getattr(step, "within", ())]
    width = max((len(str(seq)) for _, seq, _ in lines), default=0)
    return [f"  seq {seq:>{width}}  {inside}{says}" for inside, seq, says in lines]
