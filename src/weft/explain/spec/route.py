"""One route: every rule that was considered, and what would have led elsewhere."""

import msgspec

from weft.explain.spec.text import table, visible
from weft.kernel.values import Json, preview


class Weighed(msgspec.Struct, frozen=True):
    """A rule at the moment of the decision: what it wants, what it saw, and its verdict."""

    rule: int
    target: str
    condition: str
    saw: dict[str, Json]
    fired: bool
    why_not: str

    @property
    def verdict(self) -> str:
        """What came of the rule."""
        return "fired" if self.fired else f"no: {self.why_not}"


class Otherwise(msgspec.Struct, frozen=True):
    """One value that, had it been another, would have led elsewhere; `rule` 0 is no rule."""

    variable: str
    was: Json
    becomes: Json
    anything_else: bool
    rule: int
    target: str
    says: str


class RouteExplained(msgspec.Struct, frozen=True):
    """Why the work went where it went."""

    run: str
    seq: int
    asked: int
    source: str
    target: str
    reason: str
    rules: tuple[Weighed, ...]
    otherwise: tuple[Otherwise, ...]

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
        """What single change of a value would have led elsewhere, a line each."""
        if not self.otherwise:
            return ["Otherwise: no single value would have led elsewhere"]
        return ["Otherwise:", *(f"  {each.says}" for each in self.otherwise)]

    def _rules(self) -> list[str]:
        if not self.rules:
            return ["Rules: none was considered"]
        rows = [
            (
                f"  rule {each.rule}",
                f"→ {each.target}",
                each.condition or "always",
                ", ".join(f"{name} = {preview(value)}" for name, value in each.saw.items()),
                each.verdict,
            )
            for each in self.rules
        ]
        return ["Rules considered, in order:", *table(rows)]
