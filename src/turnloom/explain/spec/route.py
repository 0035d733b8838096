"""Explanations of routes: the rules or paths considered, and the changes that lead elsewhere."""

from collections.abc import Sequence

import msgspec

from turnloom.explain.spec.text import ReadableExplanation, table
from turnloom.explain.spec.variable import Cause
from turnloom.guards.events import Candidate
from turnloom.kernel.markup import visible
from turnloom.kernel.values import Json, preview


class ShownSelection(msgspec.Struct, frozen=True):
    """The agent selected for a turn `meant` for another one; empty if no candidate was left."""

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
        """The selection as one line."""
        instead = f" in place of {self.meant}" if self.meant not in ("", self.chosen) else ""
        sure = f", confidence {self.confidence:g}" if self.chosen else ""
        who = f"{self.chosen or 'no candidate'}{instead}"
        return f"Selection (seq {self.seq}): {who}, in category {self.category!r}{sure}"

    @property
    def lines(self) -> list[str]:
        """The selection, then each candidate with its belief and draw, exclusions and notes."""
        rows = [COLUMNS, *map(_cells, self.candidates)]
        candidates = [f"  {row}" for row in table(rows)] if self.candidates else []
        excluded = [f"  excluded: {', '.join(self.excluded)}"] if self.excluded else []
        return [self.says, *candidates, *excluded, *(f"  ! {note}" for note in self.notes)]


COLUMNS = ("candidate", "belief", "draw", "cost", "score")


def _cells(each: Candidate) -> tuple[str, ...]:
    draw, score = f"{each.draw:.3f}", f"{each.score:.3f}"
    return each.agent, belief_of(each), draw, f"{each.cost:g}", score


def belief_of(candidate: Candidate) -> str:
    """The belief about a candidate."""
    return f"Beta({candidate.alpha:g}, {candidate.beta:g})"


class FailedPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a condition that did not hold; `absent` is why the variable has no value."""

    variable: str
    wanted: Json
    was: Json
    absent: str = ""

    @property
    def says(self) -> str:
        """The part as one line."""
        if self.absent:
            return f"{self.variable} is absent: {self.absent}"
        return f"{self.variable} is {preview(self.was)}, not {preview(self.wanted)}"


class ChangedValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another value of a variable; with `anything_else`, any that no condition names."""

    variable: str
    was: Json
    becomes: Json
    anything_else: bool = False
    absent: bool = False

    @property
    def says(self) -> str:
        """The change in words."""
        becomes = "anything else" if self.anything_else else preview(self.becomes)
        was = "absent" if self.absent else preview(self.was)
        return f"{self.variable} been {becomes} (it was {was})"


NO_CHANGE = "no single change"


class WeighedRule(msgspec.Struct, frozen=True):
    """A rule at the moment of the decision: its condition, the values it read, and its verdict.

    `offered` is the description shown to the model, if the model judges the rule. A `pre` rule is
    judged before its agent replies. Of a rule that did not fire, `failed` are the parts that did
    not hold, and `needed` is the smallest set of values that would have fired it: at most two, of
    declared domains; empty if there is none.
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
    description: str = ""
    failed: tuple[FailedPart, ...] = ()
    needed: tuple[ChangedValue, ...] = ()

    @property
    def wants(self) -> str:
        """The condition, when it is judged unless after a turn, and the rule's description."""
        when = " (before the reply)" if self.pre else ""
        note = f": {self.description}" if self.description else ""
        return f"{self.condition or 'always'}{when}{note}"

    @property
    def sight(self) -> str:
        """The values that the rule read, or the description shown to the model."""
        if self.model:
            return f"the model saw: {self.offered}" if self.offered else ""
        return ", ".join(f"{name} = {preview(value)}" for name, value in self.saw.items())

    @property
    def verdict(self) -> str:
        """The verdict, with the reason if the rule did not fire."""
        failed = "; ".join(each.says for each in self.failed)
        return "fired" if self.fired else f"no: {failed or self.why_not}"

    @property
    def otherwise(self) -> str:
        """What would have fired the rule, as one line."""
        needed = " and ".join(each.says for each in self.needed)
        return f"rule {self.rule} → {self.target}: {f'had {needed}' if needed else NO_CHANGE}"


def rule_lines(rules: Sequence[WeighedRule]) -> list[str]:
    """The rules considered with their verdicts, in columns."""
    rows = [
        (f"  rule {each.rule}", f"→ {each.target}", each.wants, each.sight, each.verdict)
        for each in rules
    ]
    return ["Rules considered, in order:", *table(rows)] if rows else []


def otherwise_lines(rules: Sequence[WeighedRule]) -> list[str]:
    """What would have fired each rule that did not fire, one line each."""
    lines = [f"  {each.otherwise}" for each in rules if not each.fired]
    return ["Would have fired:", *lines] if lines else []


class FlowRouteExplained(ReadableExplanation, frozen=True):
    """Why a flow took a path: the decision, its inputs, its causes and its consequences. `kind` is
    that of the event, and `rules` are the cases of a branch, or the condition of a loop."""

    run: str
    seq: int
    asked: int
    kind: str
    place: str
    decided: str
    went_by: tuple[str, ...]
    causes: tuple[Cause, ...]
    came_of: tuple[str, ...]
    rules: tuple[WeighedRule, ...] = ()

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.parts]))

    @property
    def headline(self) -> str:
        """The decision and its place, with a note if it comes after the requested event."""
        line = f"At seq {self.seq}, {self.decided}, run {self.run}"
        if self.asked == self.seq:
            return line
        return f"Nothing was decided at seq {self.asked}. The next decision:\n{line}"

    @property
    def parts(self) -> list[str]:
        """Inputs, causes and consequences of the decision, one line each."""
        causes = [f"  seq {each.seq}: {each.says}" for each in self.causes]
        lines = [*self.went_by, *rule_lines(self.rules)]
        lines += otherwise_lines(self.rules)
        lines += ["Because:", *causes] if causes else []
        lines += ["Then:", *(f"  {each}" for each in self.came_of)]
        return lines if self.came_of else lines[:-1]


class SpeakerPick(msgspec.Struct, frozen=True):
    """The speaker picked when no rule fired: by whom, and among which agents."""

    seq: int
    by: str
    picked: str
    among: tuple[str, ...]

    @property
    def says(self) -> str:
        """The pick as one line."""
        among = ", ".join(self.among)
        return f"Picked (seq {self.seq}): {self.picked}, by {self.by}, among {among}"


class Alternative(msgspec.Struct, frozen=True):
    """A change of one variable that leads to another route; `rule` is 0 if no rule fires then."""

    variable: str
    was: Json
    becomes: Json
    anything_else: bool
    rule: int
    target: str
    says: str


class RouteExplained(ReadableExplanation, frozen=True):
    """Why the work went from one agent to another.

    `doubt` describes the route that the declarations of the run lead to, if it is another one.
    `selection` is the choice of a guard before or after the route.
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
        rules = rule_lines(self.rules) or ["Rules: none considered"]
        return visible("\n".join([self.headline, *rules, *self.alternatives]))

    @property
    def headline(self) -> str:
        """Source, target and reason of the route, with a note if it comes after the requested
        event."""
        source = self.source or "start"
        line = f"Route at seq {self.seq}: {source} → {self.target} ({self.reason}), run {self.run}"
        if self.asked == self.seq:
            return line
        return f"Seq {self.asked} is not a route. The next route:\n{line}"

    @property
    def alternatives(self) -> list[str]:
        """Pick, selection, and the single changes of a variable that lead elsewhere."""
        lines = [self.picked.says] if self.picked else []
        lines += self.selection.lines if self.selection else []
        if self.doubt:
            return [*lines, f"! {self.doubt}"]
        lines += otherwise_lines(self.rules)
        if not self.otherwise:
            return [*lines, "Otherwise: no single value would have led elsewhere"]
        return [*lines, "Otherwise:", *(f"  {each.says}" for each in self.otherwise)]
