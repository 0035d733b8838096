"""Explanation of a turn: its frame, its steps, and the next move."""

from collections.abc import Sequence

import msgspec

from turnloom.agents.spec import Exchange, Usage
from turnloom.assembly.events import Withheld
from turnloom.board.spec import (
    After,
    Audience,
    Labelled,
    Private,
    Public,
    Shared,
    Tenant,
    Visibility,
)
from turnloom.explain.spec.board import WakeReason
from turnloom.explain.spec.steps import Step, lines_of
from turnloom.explain.spec.text import (
    ReadableExplanation,
    duration,
    indent,
    moment,
    one_line,
    table,
)
from turnloom.kernel.markup import visible
from turnloom.kernel.values import as_data


def audience(visibilities: Audience) -> str:
    """Describe who may see a frame."""
    return " and ".join(map(_admitted, visibilities)) or "everybody"


def _admitted(visibility: Visibility) -> str:
    match visibility:
        case Private(agents=agents):
            return f"the agents {', '.join(sorted(agents))} only"
        case Labelled(labels=labels):
            return f"readers with the labels {', '.join(sorted(labels))} only"
        case Tenant(tenant_id=tenant):
            return f"the tenant {tenant} only"
        case After(at=at, then=then):
            return f"{_admitted(then)} from {moment(at)} on"
        case Public():
            return "everybody"
        case Shared():
            return "everybody in every tenant"


class ShownMessage(msgspec.Struct, frozen=True):
    """One message of the history, and the event that holds it."""

    seq: int
    author: str
    text: str


class ShownSegment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A segment of the frame with its exact text and its share of the whole in percent."""

    kind: str
    origin: str
    reason: str
    tokens: int
    share: float
    digest: str
    text: str
    messages: tuple[ShownMessage, ...] = ()


class NextMove(msgspec.Struct, frozen=True):
    """The next move after the turn: a route, or the end of the run."""

    seq: int
    kind: str
    target: str
    reason: str


class ShownFrame(msgspec.Struct, frozen=True):
    """The frame that an engine was shown, byte for byte. `seq` is the event that recorded it."""

    seq: int
    as_in: int
    segments: tuple[ShownSegment, ...]
    withheld: tuple[Withheld, ...]
    tokens: int
    counter: str
    digest: str
    prompt: str
    visibility: Audience = ()


NO_FRAME = ShownFrame(0, 0, (), (), tokens=0, counter="", digest="", prompt="")


class PartExplained(msgspec.Struct, frozen=True):
    """One engine or one try of a turn: its frame if it differs from that of the turn, and the
    exchanges passed to its last model call."""

    name: str
    frame: ShownFrame | None
    exchanges: tuple[Exchange, ...]

    @property
    def lines(self) -> list[str]:
        """The segments and exchanges of this part, one line each."""
        if self.frame is None:
            lines = [f"{self.name} was shown the same frame"]
        else:
            size = f"{self.frame.tokens} tokens, digest {self.frame.digest}"
            lines = [f"{self.name} was shown a separate frame (seq {self.frame.seq}), {size}:"]
            lines += segment_lines(self.frame.segments)
        if self.exchanges:
            lines += [
                f"{self.name} was given, in its last model call:",
                *exchange_lines(self.exchanges),
            ]
        return lines


class TurnExplained(ReadableExplanation, frozen=True):
    """The exact frame of one turn, and what the turn did.

    `seq` is the event that recorded the frame, or 0 without a frame. `exchanges` were passed to
    later model calls in addition to the frame: one to the second call, two to the third, and so on.
    `woken` is the reason for the turn, on a board. `parts` describe further engines and tries.
    `visibility` combines that of everything in the frame.
    """

    run: str
    turn: int
    agent: str
    status: str
    error: str
    seq: int
    as_in: int
    segments: tuple[ShownSegment, ...]
    withheld: tuple[Withheld, ...]
    tokens: int
    counter: str
    digest: str
    verified: bool
    doubts: tuple[str, ...]
    prompt: str
    exchanges: tuple[Exchange, ...]
    steps: tuple[Step, ...]
    usage: Usage
    seconds: float | None
    onward: NextMove | None
    woken: WakeReason | None = None
    parts: tuple[PartExplained, ...] = ()
    visibility: Audience = ()

    def __str__(self) -> str:
        lines = [self.headline, *self.waking, *self._sight(), *self._left_out(), *self.outcome]
        lines += ["", "The prompt, segment by segment:", *segment_lines(self.segments)]
        if self.exchanges:
            lines += ["Exchanges, given to later model calls:", *exchange_lines(self.exchanges)]
        for part in self.parts:
            lines += part.lines
        return visible("\n".join(lines))

    @property
    def headline(self) -> str:
        """The turn, the size of its frame, and whether its digests match."""
        status = f"{self.status}: {one_line(self.error, 200)}" if self.error else self.status
        who = f"Turn {self.turn} of {self.agent} ({status}), run {self.run}"
        if not self.seq:
            return f"{who}: no frame{' yet' if self.status == 'open' else ''}"
        proof = "digests verified" if self.verified else "DIGESTS DO NOT MATCH"
        return f"{who}: {self.tokens} tokens ({self.counter}), digest {self.digest}, {proof}"

    @property
    def waking(self) -> list[str]:
        """Why the agent was woken, on a board."""
        return self.woken.lines if self.woken else []

    def _sight(self) -> list[str]:
        rows = [
            (f"  [{n}]", each.kind, each.origin, f"{each.tokens}", f"{each.share} %", each.reason)
            for n, each in enumerate(self.segments, 1)
        ]
        heads = [f"Shown, for {audience(self.visibility)}:" if self.visibility else "Shown:"]
        return [*(f"  ! {doubt}" for doubt in self.doubts), *heads, *table(rows)]

    def _left_out(self) -> list[str]:
        if not self.withheld:
            return ["Withheld: nothing"]
        rows = [(f"  {each.origin}", each.reason, each.detail) for each in self.withheld]
        return ["Withheld:", *table(rows)]

    @property
    def outcome(self) -> list[str]:
        """The steps of the turn and the next move, one line each."""
        took = f", {duration(self.seconds)}" if self.seconds is not None else ""
        lines = [f"What happened ({self.usage}{took}):", *lines_of(self.steps)]
        if (onward := self.onward) is not None:
            target = f" → {onward.target}" if onward.target else ""
            lines.append(f"Then (seq {onward.seq}): {onward.kind}{target} ({onward.reason})")
        return lines

    @property
    def exchanged(self) -> list[str]:
        """Each exchange as JSON."""
        return [as_data(each) for each in self.exchanges]


def segment_lines(segments: Sequence[ShownSegment]) -> list[str]:
    """Segments with their texts, as lines."""
    lines: list[str] = []
    for number, segment in enumerate(segments, 1):
        lines += [f"  [{number}] {segment.kind} {segment.origin}", indent(segment.text)]
    return lines


def exchange_lines(exchanges: Sequence[Exchange]) -> list[str]:
    """Exchanges as JSON, one line each."""
    return [f"  [{number}] {as_data(each)}" for number, each in enumerate(exchanges, 1)]
