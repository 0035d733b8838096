"""Explanation of a variable: its purpose, the source of its value, its changes and its readers."""

from datetime import datetime

import msgspec

from turnloom.explain.spec.text import ReadableExplanation, one_line, table
from turnloom.kernel.markup import visible
from turnloom.kernel.values import Json, preview


class Cause(msgspec.Struct, frozen=True):
    """One event in a chain of causes."""

    seq: int
    kind: str
    actor: str
    says: str


class VariableChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of the value with its chain of causes, nearest first, back to an input from
    outside.

    `absent`: no value before. `removed`: no value after. `ephemeral`: the value lived only in the
    memory of a process.
    """

    seq: int
    at: datetime
    previous: Json
    value: Json
    writer: str
    causes: tuple[Cause, ...]
    absent: bool = False
    removed: bool = False
    ephemeral: bool = False

    @property
    def says(self) -> str:
        """The change as one line: old value, new value, writer."""
        was = "absent" if self.absent else preview(self.previous)
        now = "removed" if self.removed else shown(self.value, self.ephemeral)
        return f"{was} → {now} by {self.writer}"


class RefusedValue(msgspec.Struct, frozen=True):
    """A refused write to the variable."""

    seq: int
    at: datetime
    writer: str
    reason: str
    causes: tuple[Cause, ...]

    @property
    def says(self) -> str:
        """The refusal as one line: writer and reason."""
        return f"write by {self.writer} refused: {one_line(self.reason, 200)}"


class Omission(msgspec.Struct, frozen=True):
    """A value in an answer that the asking tool did not write to the variable."""

    seq: int
    at: datetime
    tool: str
    key: str
    value: Json
    causes: tuple[Cause, ...]

    @property
    def says(self) -> str:
        """The omission as one line."""
        was = preview(self.value)
        return f"not set by tool:{self.tool}, but answered: {self.key} = {was}"


Write = VariableChange | RefusedValue | Omission


class FrameMention(msgspec.Struct, frozen=True):
    """A frame that showed the variable, or withheld it with a reason.

    `origin` is the segment: that of the variable, or a handoff whose text contains its value.
    """

    seq: int
    turn: int
    agent: str
    text: str
    withheld: str = ""
    origin: str = ""


class JudgedRule(msgspec.Struct, frozen=True):
    """A handoff rule whose condition read the variable."""

    seq: int
    source: str
    target: str
    rule: int
    condition: str
    value: Json
    fired: bool
    why_not: str

    @property
    def who(self) -> str:
        """The rule: source agent and number."""
        return f"{self.source} rule {self.rule}"

    @property
    def verdict(self) -> str:
        """The verdict of the rule, with its target or the reason against it."""
        return f"fired → {self.target}" if self.fired else f"no: {self.why_not}"


class GatedHook(msgspec.Struct, frozen=True):
    """A hook whose condition read the variable."""

    seq: int
    hook: str
    trigger: str
    agent: str | None
    condition: str
    value: Json
    ran: bool
    why_not: str

    @property
    def who(self) -> str:
        """The hook, its trigger and its agent."""
        of = f" of {self.agent}" if self.agent else ""
        return f"hook {self.hook}, {self.trigger}{of}"

    @property
    def verdict(self) -> str:
        """Whether the hook ran, or why it was skipped."""
        return "ran" if self.ran else f"skipped: {self.why_not}"


class VariableExplained(ReadableExplanation, frozen=True):
    """Why a variable has the value it has, as of an event."""

    run: str
    name: str
    description: str
    at: int
    present: bool
    value: Json
    ephemeral: bool
    undeclared: bool
    source: str
    place: str
    raw: str | None
    first: Json
    defaulted: bool
    note: str
    suppressed: str
    changes: tuple[VariableChange, ...]
    refused: tuple[RefusedValue, ...]
    missed: tuple[Omission, ...]
    frames: tuple[FrameMention, ...]
    conditions: tuple[JudgedRule, ...]
    hooks: tuple[GatedHook, ...]

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.origin, *self._history(), *self._readers()]))

    @property
    def headline(self) -> str:
        """The value as of the requested event."""
        value = shown(self.value, self.ephemeral) if self.present else "absent"
        return f"{self.name} is {value} as of seq {self.at}, run {self.run}"

    @property
    def origin(self) -> list[str]:
        """The description and the source of the first value, one line each."""
        lines = [f"Description: {one_line(self.description, 200)}"] if self.description else []
        if self.suppressed:
            return [*lines, f"Suppressed: {self.suppressed}"]
        if self.undeclared:
            return [*lines, "Undeclared: only tools and hooks write it"]
        if not self.source:
            return [*lines, "Not loaded yet"]
        place = f" ({self.place})" if self.place else ""
        raw = f"{preview(self.raw)} → " if self.raw is not None else ""
        used = " (the default)" if self.defaulted else ""
        lines.append(f"Source: {self.source}{place}: {raw}{preview(self.first)}{used}")
        return [*lines, f"Note: {one_line(self.note, 200)}"] if self.note else lines

    @property
    def history(self) -> list[Write]:
        """All writes after the first value in log order: changes, refusals and omissions."""
        return sorted((*self.changes, *self.refused, *self.missed), key=lambda write: write.seq)

    @property
    def judged(self) -> list[JudgedRule | GatedHook]:
        """All conditions of rules and hooks that read the variable, in log order."""
        return sorted((*self.conditions, *self.hooks), key=lambda each: each.seq)

    def _history(self) -> list[str]:
        lines = ["Changes:" if self.history else "Changes: none"]
        for write in self.history:
            lines.append(f"  seq {write.seq}: {write.says}")
            rows = [(f"    ← seq {each.seq}", each.kind, each.says) for each in write.causes]
            lines += table(rows)
        return lines

    def _readers(self) -> list[str]:
        seen = [
            (f"  seq {each.seq}", f"turn {each.turn}", each.agent, each.withheld or each.text)
            for each in self.frames
        ]
        judged = [
            (f"  seq {each.seq}", each.who, each.condition, each.verdict) for each in self.judged
        ]
        return [
            "Frames:" if seen else "Frames: none showed it",
            *table(seen),
            "Conditions:" if judged else "Conditions: none read it",
            *table(judged),
        ]


def shown(value: Json, ephemeral: bool) -> str:
    """Format a value on one line; an ephemeral value is shown as its recorded placeholder."""
    return str(value) if ephemeral else preview(value)
