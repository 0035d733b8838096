"""What happened in a turn: calls, writes, questions and effects."""

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
from turnloom.explain.spec.text import counted, lasting, moment, one_line
from turnloom.kernel.values import Json, as_data, preview

# How many characters of a value or a text a line shows.
LINE = 200


def data(value: Json) -> str:
    """A value as data on one line."""
    return one_line(as_data(value), LINE)


class TextEntry(msgspec.Struct, frozen=True, tag="text"):
    """What the agent said; `hidden` from the user if it was a control word."""

    seq: int
    text: str
    hidden: bool

    @property
    def says(self) -> str:
        """What was said, on one line."""
        return f"said{_hidden(self.hidden)}: {one_line(self.text, LINE)}"


class AddedTextEntry(msgspec.Struct, frozen=True, tag="added by engine"):
    """What the model was shown beside the frame and the exchanges, text by text."""

    seq: int
    texts: tuple[str, ...]

    @property
    def says(self) -> str:
        """What was added, each text as data."""
        return f"added by engine: {', '.join(map(data, self.texts))}"


class EngineToolEntry(msgspec.Struct, frozen=True, tag="called by engine"):
    """A tool of the engine's own that it called itself, and what that gave or why it failed."""

    seq: int
    tool: str
    arguments: Json
    result: Json
    error: str

    @property
    def says(self) -> str:
        """What was called, with what, and what came of it."""
        came = f"failed: {one_line(self.error, LINE)}" if self.error else f"→ {data(self.result)}"
        return f"called by engine: {self.tool} {data(self.arguments)} {came}"


class OutputEntry(msgspec.Struct, frozen=True, tag="output"):
    """An output of the form that the agent was asked for."""

    seq: int
    model: str
    output: Json
    hidden: bool

    @property
    def says(self) -> str:
        """The output, on one line."""
        return f"gave {self.model}{_hidden(self.hidden)}: {data(self.output)}"


class RefusedOutputEntry(msgspec.Struct, frozen=True, tag="refused output"):
    """An answer that was not of the form that the agent was asked for."""

    seq: int
    model: str
    raw: str
    problem: str

    @property
    def says(self) -> str:
        """What was wrong, and with what."""
        problem, raw = one_line(self.problem, LINE), one_line(self.raw, LINE)
        return f"was refused, no {self.model}: {problem}; it said: {raw}"


class ChangeEntry(msgspec.Struct, frozen=True, tag="change"):
    """A variable that took another value, or lost it."""

    seq: int
    name: str
    previous: Json
    value: Json
    writer: str
    removed: bool = False

    @property
    def says(self) -> str:
        """What became what, and by whom."""
        now = "removed" if self.removed else preview(self.value)
        return f"{self.name}: {preview(self.previous)} → {now} by {self.writer}"


class RefusedWriteEntry(msgspec.Struct, frozen=True, tag="refused write"):
    """A value that a variable could not have."""

    seq: int
    name: str
    writer: str
    reason: str

    @property
    def says(self) -> str:
        """Whose write was refused, and why."""
        return f"{self.name}: refused to {self.writer}: {one_line(self.reason, LINE)}"


class MissedWriteEntry(msgspec.Struct, frozen=True, tag="missed write"):
    """A variable that a tool was to set from an answer, and did not."""

    seq: int
    name: str
    tool: str
    key: str
    value: Json

    @property
    def says(self) -> str:
        """What was not set, and what the answer said."""
        return f"{self.name}: not set by {self.tool}, and {self.key} was {preview(self.value)}"


class EffectEntry(msgspec.Struct, frozen=True, tag="effect"):
    """An effect that is not repeated when its call is entered again."""

    seq: int
    name: str
    result: Json

    @property
    def says(self) -> str:
        """What was done, and what it gave."""
        return f"did {self.name} once: {data(self.result)}"


class RetryEntry(msgspec.Struct, frozen=True, tag="retry"):
    """The `n`th attempt of a model call; it failed, and another one followed after `pause`
    seconds."""

    seq: int
    n: int
    error: str
    message: str
    pause: float

    @property
    def says(self) -> str:
        """What went wrong, and how long the engine waited before the next attempt."""
        fault = one_line(f"{self.error}: {self.message}", LINE)
        return f"attempt {self.n} failed, next one after {lasting(self.pause)}: {fault}"


class QuestionEntry(msgspec.Struct, frozen=True, tag="question"):
    """A question, and what became of it: `answered`, `expired`, or `open`."""

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
        """What was asked, who answered it when, and how long that took."""
        words = f" {preview(self.prompt)}" if self.prompt else ""
        asked = f"asked {self.to or 'nobody'}{words}"
        if self.status == "open":
            return f"{asked}, and waits"
        ended = f"{moment(self.at)}, after {lasting(self.waited)}" if self.at else ""
        if self.status == "expired":
            return f"{asked}: nobody answered until {ended}"
        return f"{asked}: {self.by} answered {data(self.value)} at {ended}"


class StackEntry(msgspec.Struct, frozen=True, tag="frame"):
    """A frame of the workflow's code in which a call failed; the innermost one comes last."""

    seq: int
    frame: str

    @property
    def says(self) -> str:
        """The place, on one line."""
        return f"raised in {one_line(self.frame, LINE)}"


class EventEntry(msgspec.Struct, frozen=True, tag="event"):
    """Anything else that happened meanwhile."""

    seq: int
    kind: str
    what: str

    @property
    def says(self) -> str:
        """What happened."""
        return f"{self.kind}: {self.what}" if self.what != self.kind else self.kind


OnBoard = ProviderEntry | FailedProviderEntry | OfferEntry | ChoiceEntry
Told = EngineToolEntry | AddedTextEntry | TextEntry | OutputEntry | RefusedOutputEntry | RetryEntry
Detail = (
    Told
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
    """The `n`th time that the engine was asked, with the frame and the exchanges `given`.

    `outcome` is `answered`, `failed`, or `open` if nothing came yet; `calls` are the tools that it
    wanted called. `part` says which engine or which try of the turn it belongs to, if there are
    several, and `model` which model answered, if the engine says so.
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
        """Who was asked with what, and what came back."""
        also = f" with {counted(self.given, 'exchange')}" if self.given else ""
        used = f"{self.usage.input_tokens} in, {self.usage.output_tokens} out"
        took = f" in {lasting(self.seconds)}" if self.seconds is not None else ""
        wants = ", ".join(_called(call.tool, call.arguments) for call in self.calls)
        calls = f", wants {wants}" if wants else ""
        error = f": {one_line(self.error, LINE)}" if self.error else ""
        part = f"{self.part}, " if self.part else ""
        model = f" ({one_line(self.model)})" if self.model else ""
        asked = f"{part}model call {self.n}: {self.engine}{model}{also} {self.outcome}"
        return f"{asked}{took} ({used}){calls}{error}"


class ToolEntry(msgspec.Struct, frozen=True, tag="tool"):
    """A call of a tool, asked for in a model call or made with the agent's output (`auto`).

    `outcome` is `returned`, `failed`, or `open` while it goes on or waits; of its `seconds`, it
    `waited` for people.
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
        """What was called with what, and what it gave."""
        gave = {"returned": f"returned {data(self.result)}", "open": "is open"}
        ended = gave.get(self.outcome, f"failed: {one_line(self.error, LINE)}")
        how = " with the output" if self.auto else ""
        part = f"{self.part}, " if self.part else ""
        return f"{part}tool {_called(self.tool, self.arguments)}{how} {ended}{self._took()}"

    def _took(self) -> str:
        if self.seconds is None:
            return ""
        waited = f", {lasting(self.waited)} of it waiting" if self.waited else ""
        return f" ({lasting(self.seconds)}{waited})"


class HookEntry(msgspec.Struct, frozen=True, tag="hook"):
    """A hook: `success`, `error`, `skipped` for a reason, or `open` while it goes on or waits.

    `restored` says that it ran again for objects that were lost with another process.
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
        """What became of the hook."""
        name = f"hook {self.hook} ({self.trigger}{', restored' if self.restored else ''})"
        if self.status == "skipped":
            return f"{name} skipped: {self.result}"
        took = [] if self.elapsed_ms is None else [lasting(self.elapsed_ms / 1000)]
        took += [f"{self.attempts} attempts"] if self.attempts > 1 else []
        took += [f"waited {lasting(self.waited)}"] if self.waited else []
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
        """Which rule was chosen, and to whom it leads."""
        return f"chose to hand over to {self.target} (rule {self.rule})"


Step = (
    ModelCallEntry | ToolEntry | HookEntry | TransferEntry | ContextEntry | ArtifactEntry | Detail
)


def lines_of(steps: Sequence[Step]) -> list[str]:
    """Steps and what happened within each, a line each."""
    lines: list[tuple[str, int, str]] = []
    for step in steps:
        lines.append(("", step.seq, step.says))
        lines += [("  ", each.seq, each.says) for each in getattr(step, "within", ())]
    width = max((len(str(seq)) for _, seq, _ in lines), default=0)
    return [f"  seq {seq:>{width}}  {inside}{says}" for inside, seq, says in lines]
