"""The timeline of a run: one row per turn, call, question or route."""

from datetime import datetime

import msgspec

from turnloom.agents.spec import Usage
from turnloom.explain.spec.cost import Cost
from turnloom.explain.spec.text import ReadableExplanation, counted, duration, moment, table
from turnloom.kernel.markup import grid, visible
from turnloom.log.spec import progress_words


class TimelineRow(msgspec.Struct, frozen=True):
    """A row of a timeline: a turn, a tool, a hook, a question, a pick, a route, the end.

    `depth` is the nesting: a tool in its turn, a question in its tool.
    """

    seq: int
    what: str
    who: str
    at: datetime
    seconds: float | None = None
    tokens: int | None = None
    usage: Usage | None = None
    note: str = ""
    depth: int = 0
    cost: Cost | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells: seq, what, who, duration, tokens shown, tokens used, note."""
        usage = self.usage
        used = f"{usage.input_tokens}/{usage.output_tokens}" if usage else ""
        used += f" ({usage.cached_tokens} cached)" if usage and usage.cached_tokens else ""
        used += f", {self.cost}" if self.cost and self.cost.dollars is not None else ""
        tokens = "" if self.tokens is None else str(self.tokens)
        what = f"{'  ' * self.depth}{self.what}"
        return str(self.seq), what, self.who, duration(self.seconds), tokens, used, self.note


class Timeline(ReadableExplanation, frozen=True):
    """What happened in a run, when, how long it took and what it used.

    Boards add the correlation, the parent runs (first the one that collected its artifacts), the
    subscription that the run collects for, and the numbers of collected and wanted artifacts.
    `spent` is the used budget, `cost` that of all model calls, if there are any.
    """

    run: str
    workflow: str
    version: str
    status: str
    user: str
    tenant: str
    started: datetime
    seconds: float
    events: int
    turns: int
    usage: Usage
    rows: tuple[TimelineRow, ...]
    correlation: str = ""
    parents: tuple[str, ...] = ()
    collects: str = ""
    spent: str = ""
    collected: int | None = None
    wanted: int | None = None
    cost: Cost | None = None

    def __str__(self) -> str:
        rows = table([COLUMNS, *(row.cells for row in self.rows)])
        return visible("\n".join([self.headline, *self.about, *rows]))

    def _repr_html_(self) -> str:
        return grid(self.headline, COLUMNS, (row.cells for row in self.rows))

    @property
    def about(self) -> list[str]:
        """The cost, the used budget and, on a board, the origin of the run, one line each."""
        lines = [f"Cost: {self.cost.sentence}"] if self.cost else []
        lines += [f"Budget: used {self.spent}"] if self.spent else []
        lines += [f"Collects for {self.collects}"] if self.collects else []
        if self.correlation not in ("", self.run):
            lines.append(f"Correlation: {self.correlation}")
        if self.parents:
            collected, *others = self.parents
            origin = f", of artifacts from {', '.join(others)}" if others else ""
            lines.append(f"Parents: collected in run {collected}{origin}")
        return lines

    @property
    def headline(self) -> str:
        """The run as one line."""
        workflow = f"{self.workflow} {self.version}".rstrip()
        standing = progress_words(self.status, self.collected, self.wanted)
        return (
            f"Run {self.run} of {workflow}: {standing}, "
            f"started {moment(self.started)}, {duration(self.seconds)}, "
            f"{counted(self.turns, 'turn')}, {counted(self.events, 'event')}"
        )


COLUMNS = ("seq", "what", "who", "took", "tokens", "used", "note")
