"""What happened within a call, or by itself: texts, writes, questions, effects."""

from datetime import datetime

import msgspec

from turnloom.explain.spec.board import Chose, Consulted, Offered, Unprovided
from turnloom.explain.spec.text import lasting, moment, one_line
from turnloom.kernel.values import Json, as_data, preview

# How many characters of a value or a text a line shows.
LINE = 200


def data(value: Json) -> str:
    """A value as data on one line."""
    return one_line(as_data(value), LINE)


class Spoken(msgspec.Struct, frozen=True, tag="text"):
    """What the agent said; `hidden` from the user if it was a control word."""

    seq: int
    text: str
    hidden: bool

    @property
    def says(self) -> str:
        """What was said, on one line."""
        return f"said{_hidden(self.hidden)}: {one_line(self.text, LINE)}"


class Added(msgspec.Struct, frozen=True, tag="added by engine"):
    """What the model was shown beside the frame and the exchanges, text by text."""

    seq: int
    texts: tuple[str, ...]

    @property
    def says(self) -> str:
        """What was added, each text as data."""
        return f"added by engine: {', '.join(map(data, self.texts))}"


class OwnTool(msgspec.Struct, frozen=True, tag="called by engine"):
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


class Gave(msgspec.Struct, frozen=True, tag="output"):
    """An output of the form that the agent was asked for."""

    seq: int
    model: str
    output: Json
    hidden: bool

    @property
    def says(self) -> str:
        """The output, on one line."""
        return f"gave {self.model}{_hidden(self.hidden)}: {data(self.output)}"


class Rejected(msgspec.Struct, frozen=True, tag="refused output"):
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


class Became(msgspec.Struct, frozen=True, tag="change"):
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


class Declined(msgspec.Struct, frozen=True, tag="refused write"):
    """A value that a variable could not have."""

    seq: int
    name: str
    writer: str
    reason: str

    @property
    def says(self) -> str:
        """Whose write was refused, and why."""
        return f"{self.name}: refused to {self.writer}: {one_line(self.reason, LINE)}"


class Unset(msgspec.Struct, frozen=True, tag="missed write"):
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


class Done(msgspec.Struct, frozen=True, tag="effect"):
    """An effect that is not repeated when its call is entered again."""

    seq: int
    name: str
    result: Json

    @property
    def says(self) -> str:
        """What was done, and what it gave."""
        return f"did {self.name} once: {data(self.result)}"


class Questioned(msgspec.Struct, frozen=True, tag="question"):
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


class Raised(msgspec.Struct, frozen=True, tag="frame"):
    """A frame of the workflow's code in which a call failed; the innermost one comes last."""

    seq: int
    frame: str

    @property
    def says(self) -> str:
        """The place, on one line."""
        return f"raised in {one_line(self.frame, LINE)}"


class Noted(msgspec.Struct, frozen=True, tag="event"):
    """Anything else that happened meanwhile."""

    seq: int
    kind: str
    what: str

    @property
    def says(self) -> str:
        """What happened."""
        return f"{self.kind}: {self.what}" if self.what != self.kind else self.kind


OnBoard = Consulted | Unprovided | Offered | Chose
Told = OwnTool | Added | Spoken | Gave | Rejected
Detail = Told | Became | Declined | Unset | Done | Questioned | Raised | Noted | OnBoard


def _hidden(hidden: bool) -> str:
    return " (hidden from the user)" if hidden else ""
