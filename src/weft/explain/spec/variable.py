"""One variable: where its value is from, what changed it, who read it."""

from datetime import datetime

import msgspec

from weft.explain.spec.text import one_line, table, visible
from weft.kernel.values import Json, preview


class Cause(msgspec.Struct, frozen=True):
    """One event in a chain of causes."""

    seq: int
    kind: str
    actor: str
    says: str


class Change(msgspec.Struct, frozen=True):
    """One change of the value, and what led to it: nearest first, back to what is from outside."""

    seq: int
    at: datetime
    previous: Json
    value: Json
    writer: str
    causes: tuple[Cause, ...]


class Sight(msgspec.Struct, frozen=True):
    """A frame that showed the variable, or that was to show it and says why it did not."""

    seq: int
    turn: int
    agent: str
    text: str
    withheld: str = ""


class Judged(msgspec.Struct, frozen=True):
    """A rule of a route whose condition looked at the variable."""

    seq: int
    source: str
    target: str
    rule: int
    condition: str
    value: Json
    fired: bool
    why_not: str

    @property
    def verdict(self) -> str:
        """What the rule made of it."""
        return f"fired → {self.target}" if self.fired else f"no: {self.why_not}"


class VariableExplained(msgspec.Struct, frozen=True):
    """Why a variable has the value it has, as of an event."""

    run: str
    name: str
    at: int
    present: bool
    value: Json
    source: str
    raw: str | None
    first: Json
    defaulted: bool
    note: str
    suppressed: str
    changes: tuple[Change, ...]
    frames: tuple[Sight, ...]
    conditions: tuple[Judged, ...]

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.origin, *self._changes(), *self._readers()]))

    @property
    def headline(self) -> str:
        """The value as of the event asked for."""
        value = preview(self.value) if self.present else "absent"
        return f"{self.name} is {value} as of seq {self.at}, run {self.run}"

    @property
    def origin(self) -> list[str]:
        """Where the first value came from, a line each."""
        if self.suppressed:
            return [f"Suppressed: {self.suppressed}"]
        if not self.source:
            return ["Not loaded yet"]
        raw = f"{preview(self.raw)} → " if self.raw is not None else ""
        used = " (the default)" if self.defaulted else ""
        lines = [f"Source: {self.source}: {raw}{preview(self.first)}{used}"]
        return [*lines, f"Note: {one_line(self.note, 200)}"] if self.note else lines

    def _changes(self) -> list[str]:
        lines = ["Changes: none"] if not self.changes else ["Changes:"]
        for change in self.changes:
            lines.append(
                f"  seq {change.seq}: {preview(change.previous)} → {preview(change.value)} "
                f"by {change.writer}"
            )
            rows = [(f"    ← seq {each.seq}", each.kind, each.says) for each in change.causes]
            lines += table(rows)
        return lines

    def _readers(self) -> list[str]:
        seen = [
            (f"  seq {each.seq}", f"turn {each.turn}", each.agent, each.withheld or each.text)
            for each in self.frames
        ]
        judged = [
            (f"  seq {each.seq}", f"{each.source} rule {each.rule}", each.condition, each.verdict)
            for each in self.conditions
        ]
        return [
            "Frames:" if seen else "Frames: none showed it",
            *table(seen),
            "Conditions:" if judged else "Conditions: none looked at it",
            *table(judged),
        ]
