"""One turn: the frame as it was sent, what came of it."""

import msgspec

from weft.agents.spec import Usage
from weft.assembly.events import Withheld
from weft.explain.spec.text import indent, one_line, table, visible
from weft.kernel.values import Json, preview


class Said(msgspec.Struct, frozen=True):
    """One message of the history, and the event that holds it."""

    seq: int
    author: str
    text: str


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A segment of the frame with its exact text and its share of the whole in percent."""

    kind: str
    origin: str
    reason: str
    tokens: int
    share: float
    digest: str
    text: str
    messages: tuple[Said, ...] = ()


class Call(msgspec.Struct, frozen=True):
    """What became of asking the engine: `answered`, `failed`, or `open` if nothing came yet."""

    engine: str
    outcome: str
    usage: Usage = Usage()
    error: str = ""


class Spoken(msgspec.Struct, frozen=True):
    """What the agent said; `hidden` from the user if it was a control word."""

    seq: int
    text: str
    hidden: bool


class Became(msgspec.Struct, frozen=True):
    """A variable that the turn changed."""

    seq: int
    name: str
    previous: Json
    value: Json
    writer: str


class Onward(msgspec.Struct, frozen=True):
    """Where the work went after the turn: a route, or the end of the run."""

    seq: int
    kind: str
    target: str
    reason: str


class TurnExplained(msgspec.Struct, frozen=True):
    """What one turn was shown, to the byte, and what it did."""

    run: str
    turn: int
    agent: str
    status: str
    seq: int
    as_in: int
    segments: tuple[Shown, ...]
    withheld: tuple[Withheld, ...]
    tokens: int
    counter: str
    digest: str
    verified: bool
    doubts: tuple[str, ...]
    prompt: str
    call: Call | None
    said: tuple[Spoken, ...]
    changed: tuple[Became, ...]
    onward: Onward | None

    def __str__(self) -> str:
        parts = [self.headline, *self._sight(), *self._left_out(), *self.outcome]
        parts += ["", "The prompt, segment by segment:"]
        for number, segment in enumerate(self.segments, 1):
            parts += [f"  [{number}] {segment.kind} {segment.origin}", indent(segment.text)]
        return visible("\n".join(parts))

    @property
    def headline(self) -> str:
        """Which turn this is, how big it was and whether the record is sound."""
        proof = "digests verified" if self.verified else "DIGESTS DO NOT MATCH"
        return (
            f"Turn {self.turn} of {self.agent} ({self.status}), run {self.run}: "
            f"{self.tokens} tokens ({self.counter}), digest {self.digest}, {proof}"
        )

    def _sight(self) -> list[str]:
        rows = [
            (f"  [{n}]", each.kind, each.origin, f"{each.tokens}", f"{each.share} %", each.reason)
            for n, each in enumerate(self.segments, 1)
        ]
        return [*(f"  ! {doubt}" for doubt in self.doubts), "Shown:", *table(rows)]

    def _left_out(self) -> list[str]:
        if not self.withheld:
            return ["Withheld: nothing"]
        rows = [(f"  {each.origin}", each.reason, each.detail) for each in self.withheld]
        return ["Withheld:", *table(rows)]

    @property
    def outcome(self) -> list[str]:
        """What came of the turn, a line each."""
        lines: list[str] = []
        if self.call is not None:
            used = f"{self.call.usage.input_tokens} in, {self.call.usage.output_tokens} out"
            error = f": {one_line(self.call.error, 200)}" if self.call.error else ""
            lines.append(f"Engine: {self.call.engine} {self.call.outcome} ({used}){error}")
        for said in self.said:
            hidden = " (hidden from the user)" if said.hidden else ""
            lines.append(f"Said (seq {said.seq}){hidden}: {one_line(said.text, 200)}")
        for change in self.changed:
            lines.append(
                f"Changed (seq {change.seq}): {change.name} {preview(change.previous)} → "
                f"{preview(change.value)} by {change.writer}"
            )
        if self.onward is not None:
            target = f" → {self.onward.target}" if self.onward.target else ""
            lines.append(
                f"Then (seq {self.onward.seq}): {self.onward.kind}{target} ({self.onward.reason})"
            )
        return lines
