"""Routes: every rule or way considered, and what would have led elsewhere."""

import msgspec

from turnloom.explain.spec.text import ReadableExplanation, table
from turnloom.explain.spec.variable import Cause
from turnloom.guards.events import Candidate
from turnloom.kernel.markup import visible
from turnloom.kernel.values import Json, preview


class FlowRouteExplained(ReadableExplanation, frozen=True):
    """Why a flow went where it went: what was decided, what that went by, what led to it and what
    came of it; `kind` is that of the event."""

    run: str
    seq: int
    asked: int
    kind: str
    place: str
    decided: str
    went_by: tuple[str, ...]
    causes: tuple[Cause, ...]
    came_of: tuple[str, ...]

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.parts]))

    @property
    def headline(self) -> str:
        """What was decided where, and which event this is if another one was named."""
        line = f"At seq {self.seq}, {self.decided}, run {self.run}"
        if self.asked == self.seq:
            return line
        return f"At seq {self.asked}, nothing was decided; the next time after it:\n{line}"

    @property
    def parts(self) -> list[str]:
        """What it went by, what led to it and what came of it, a line each."""
        causes = [f"  seq {each.seq}: {each.says}" for each in self.causes]
        lines = [*self.went_by]
        lines += ["Because:", *causes] if causes else []
        lines += ["What came of it:", *(f"  {each}" for each in self.came_of)]
        return lines if self.came_of else lines[:-1]


class ShownSelection(msgspec.Struct, frozen=True):
    """Who was chosen for a turn, in place of whom it was `meant` for; nobody, if none was left."""

    seq: int
    chosen: str
    meant: str
    category: str
    confidence: float
    candidates: tuple[Candidate, ...]
    excluded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """The choice in a line."""
        instead = f" in place of {self.meant}" if self.meant not in ("", self.chosen) else ""
        sure = f", confidence {self.confidence:g}" if self.chosen else ""
        who = f"{self.chosen or 'nobody'}{instead}"
        return f"Selection (seq {self.seq}): {who}, in category {self.category!r}{sure}"

    @property
    def lines(self) -> list[str]:
        """The choice, each candidate with its belief and its draw, and what was done without."""
        rows = [COLUMNS, *map(_cells, self.candidates)]
        candidates = [f"  {row}" for row in table(rows)] if self.candidates else []
        excluded = [f"  excluded: {', '.join(self.excluded)}"] if self.excluded else []
        return [self.says, *candidates, *excluded, *(f"  ! {note}" for note in self.notes)]


COLUMNS = ("candidate", "belief", "draw", "cost", "score")


def _cells(each: Candidate) -> tuple[str, ...]:
    draw, score = f"{each.draw:.3f}", f"{each.score:.3f}"
    return each.agent, belief_of(each), draw, f"{each.cost:g}", score


def belief_of(candidate: Candidate) -> str:
    """What was believed of a candidate."""
    return f"Beta({candidate.alpha:g}, {candidate.beta:g})"


class WeighedRule(msgspec.Struct, frozen=True):
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


class SpeakerPick(msgspec.Struct, frozen=True):
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


class Alternative(msgspec.Struct, frozen=True):
    """One value that, had it been another, would have led elsewhere; `rule` 0 is no rule."""

    variable: str
    was: Json
    becomes: Json
    anything_else: bool
    rule: int
    target: str
    says: str


class RouteExplained(ReadableExplanation, frozen=True):
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
    rules: tuple[WeighedRule, ...]
    picked: SpeakerPick | None
    otherwise: tuple[Alternative, ...]
    doubt: str
    selection: ShownSelection | None = None

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
