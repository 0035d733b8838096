"""What happened in a turn: model calls, tools and hooks, each with what came of it."""

from collections.abc import Sequence

import msgspec

from turnloom.agents.spec import ToolCall, Usage
from turnloom.explain.spec.board import Gathered, Published
from turnloom.explain.spec.details import LINE, Detail, data
from turnloom.explain.spec.text import counted, lasting, one_line
from turnloom.kernel.values import Json


def _called(tool: str, arguments: Json) -> str:
    return f"{tool} {data(arguments)}" if arguments else tool


class ModelAsked(msgspec.Struct, frozen=True, tag="model call"):
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


class ToolUsed(msgspec.Struct, frozen=True, tag="tool"):
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


class HookRan(msgspec.Struct, frozen=True, tag="hook"):
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


class Transferred(msgspec.Struct, frozen=True, tag="transfer"):
    """A handoff that the agent's model chose."""

    seq: int
    rule: int
    target: str
    within: tuple[Detail, ...] = ()

    @property
    def says(self) -> str:
        """Which rule was chosen, and to whom it leads."""
        return f"chose to hand over to {self.target} (rule {self.rule})"


Step = ModelAsked | ToolUsed | HookRan | Transferred | Gathered | Published | Detail


def lines_of(steps: Sequence[Step]) -> list[str]:
    """Steps and what happened within each, a line each."""
    lines: list[tuple[str, int, str]] = []
    for step in steps:
        lines.append(("", step.seq, step.says))
        lines += [("  ", each.seq, each.says) for each in getattr(step, "within", ())]
    width = max((len(str(seq)) for _, seq, _ in lines), default=0)
    return [f"  seq {seq:>{width}}  {inside}{says}" for inside, seq, says in lines]
