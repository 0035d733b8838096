"""One variable: what it is for, where its value is from, what changed it, who read it."""

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

    @property
    def says(self) -> str:
        """What became what, and by whom."""
        return f"{preview(self.previous)} → {preview(self.value)} by {self.writer}"


class Refusal(msgspec.Struct, frozen=True):
    """A value that somebody wanted the variable to take and that it could not have."""

    seq: int
    at: datetime
    writer: str
    reason: str
    causes: tuple[Cause, ...]

    @property
    def says(self) -> str:
        """Whose value was refused, and why."""
        return f"refused to {self.writer}: {one_line(self.reason, 200)}"


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
    description: str
    at: int
    present: bool
    value: Json
    source: str
    place: str
    raw: str | None
    first: Json
    defaulted: bool
    note: str
    suppressed: str
    changes: tuple[Change, ...]
    refused: tuple[Refusal, ...]
    frames: tuple[Sight, ...]
    conditions: tuple[Judged, ...]

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.origin, *self._history(), *self._readers()]))

    @property
    def headline(self) -> str:
        """The value as of the event asked for."""
        value = preview(self.value) if self.present else "absent"
        return f"{self.name} is {value} as of seq {self.at}, run {self.run}"

    @property
    def origin(self) -> list[str]:
        """What the variable is for and where its first value came from, a line each."""
        lines = [f"Description: {one_line(self.description, 200)}"] if self.description else []
        if self.suppressed:
            return [*lines, f"Suppressed: {self.suppressed}"]
        if not self.source:
            return [*lines, "Not loaded yet"]
        place = f" ({self.place})" if self.place else ""
        raw = f"{preview(self.raw)} → " if self.raw is not None else ""
        used = " (the default)" if self.defaulted else ""
        lines.append(f"Source: {self.source}{place}: {raw}{preview(self.first)}{used}")
        return [*lines, f"Note: {one_line(self.note, 200)}"] if self.note else lines

    @property
    def history(self) -> list[Change | Refusal]:
        """Every write since the first value, taken or refused, in the order of the log."""
        return sorted((*self.changes, *self.refused), key=lambda write: write.seq)

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
            (f"  seq {each.seq}", f"{each.source} rule {each.rule}", each.condition, each.verdict)
            for each in self.conditions
        ]
        return [
            "Frames:" if seen else "Frames: none showed it",
            *table(seen),
            "Conditions:" if judged else "Conditions: none looked at it",
            *table(judged),
        ]
