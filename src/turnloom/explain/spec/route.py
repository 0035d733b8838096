"""One route: every rule that was considered, and what would have led elsewhere."""

import msgspec

from turnloom.explain.spec.selection import Selected
from turnloom.explain.spec.text import Explained, table
from turnloom.kernel.pages import visible
from turnloom.kernel.values import Json, preview


class Weighed(msgspec.Struct, frozen=True):
    """A rule at the moment of the decision: what it wants, what it saw, and its verdict.

    One that the agent's model judges has the words with which it was `offered`; one that is
    `pre` was judged before its agent would reply.
    """

    rule: int
    target: str
    condition: str
    saw: dict[str, Json]
    fired: bool
    why_not: str
    model: bool = False
    pre: bool = False
    offered: str = ""

    @property
    def wants(self) -> str:
        """The condition, and when it is judged if not after a turn."""
        return f"{self.condition or 'always'}{' (before the reply)' if self.pre else ''}"

    @property
    def sight(self) -> str:
        """The values that it saw, or the words that the model was given."""
        if self.model:
            return f"the model was told: {self.offered}" if self.offered else ""
        return ", ".join(f"{name} = {preview(value)}" for name, value in self.saw.items())

    @property
    def verdict(self) -> str:
        """What came of the rule."""
        return "fired" if self.fired else f"no: {self.why_not}"


class Picked(msgspec.Struct, frozen=True):
    """Who was picked when no rule fired, by whom, and among whom."""

    seq: int
    by: str
    picked: str
    among: tuple[str, ...]

    @property
    def says(self) -> str:
        """The pick in a line."""
        among = ", ".join(self.among)
        return f"Picked (seq {self.seq}): {self.picked}, by {self.by}, among {among}"


class Otherwise(msgspec.Struct, frozen=True):
    """One value that, had it been another, would have led elsewhere; `rule` 0 is no rule."""

    variable: str
    was: Json
    becomes: Json
    anything_else: bool
    rule: int
    target: str
    says: str


class RouteExplained(Explained, frozen=True):
    """Why the work went where it went.

    `doubt` says what the declarations of the run decide at this place, if that is not this route;
    `selection` what a guard made of it, before or after.
    """

    run: str
    seq: int
    asked: int
    source: str
    target: str
    reason: str
    rules: tuple[Weighed, ...]
    picked: Picked | None
    otherwise: tuple[Otherwise, ...]
    doubt: str
    selection: Selected | None = None

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self._rules(), *self.alternatives]))

    @property
    def headline(self) -> str:
        """Who handed over to whom and why, and which route this is if another event was named."""
        source = self.source or "start"
        line = f"Route at seq {self.seq}: {source} → {self.target} ({self.reason}), run {self.run}"
        if self.asked == self.seq:
            return line
        return f"Seq {self.asked} is no route; the next one decided after it:\n{line}"

    @property
    def alternatives(self) -> list[str]:
        """Who was picked or chosen, and what single change of a value would have led elsewhere."""
        lines = [self.picked.says] if self.picked else []
        lines += self.selection.lines if self.selection else []
        if self.doubt:
            return [*lines, f"! {self.doubt}"]
        if not self.otherwise:
            return [*lines, "Otherwise: no single value would have led elsewhere"]
        return [*lines, "Otherwise:", *(f"  {each.says}" for each in self.otherwise)]

    def _rules(self) -> list[str]:
        if not self.rules:
            return ["Rules: none was considered"]
        rows = [
            (f"  rule {each.rule}", f"→ {each.target}", each.wants, each.sight, each.verdict)
            for each in self.rules
        ]
        return ["Rules considered, in order:", *table(rows)]
