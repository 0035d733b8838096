"""Who was offered an artifact and what came of it, and why a subscription took what it took."""

from datetime import datetime

import msgspec

from turnloom.explain.spec.board import NAMED, Named, Offered, indented
from turnloom.explain.spec.selection import Selected
from turnloom.explain.spec.text import Explained, counted, moment, table
from turnloom.kernel.pages import visible


class OfferExplained(Explained, frozen=True):
    """What every subscription made of an artifact, and why it was not for some of them.

    `seq` is where it was offered, or where it came if it was not.
    """

    run: str
    seq: int
    asked: int
    artifact: Named
    offered: bool
    to: tuple[Offered, ...]
    selection: Selected | None = None

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *indented([self.artifact]), *self._verdicts()]))

    @property
    def headline(self) -> str:
        """Which artifact it is about, and where that was offered."""
        did = "offered" if self.offered else "not offered to anybody"
        line = f"Artifact {self.artifact.id} {did} at seq {self.seq}, run {self.run}"
        is_meant = self.asked in (self.seq, self.artifact.seq)
        return line if is_meant else f"{_next(self.asked)}\n{line}"

    @property
    def nobody(self) -> str:
        """What is said where no subscription was considered."""
        if self.offered:
            return "Subscriptions: none was considered"
        return f"Subscriptions: none takes {self.artifact.type} here, or it was not judged yet"

    def _verdicts(self) -> list[str]:
        if not self.to:
            return [self.nobody]
        rows = [(f"  {each.subscription}", each.told) for each in self.to]
        return ["Subscriptions considered, in order:", *table(rows), *self.choice]

    @property
    def choice(self) -> list[str]:
        """Whom a guard chose of those who would have been woken, and how."""
        return self.selection.lines if self.selection else []


class Arrived(msgspec.Struct, frozen=True):
    """An artifact of a set: where and when it was offered to the subscription."""

    artifact: Named
    seq: int
    at: datetime | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The artifact as texts: where it was offered and when, then its name."""
        offered = str(self.seq) if self.seq else "-"
        return offered, moment(self.at) if self.at else "-", *self.artifact.cells


ARRIVED = ("offered at", "when", *NAMED)


class ConsumptionExplained(Explained, frozen=True):
    """Why a subscription took what it took when it took it, and into what.

    `because` is what completed the set, in words, and `cause` the event that did.
    """

    run: str
    seq: int
    asked: int
    agent: str
    subscription: str
    turn: int
    opened: str
    artifacts: tuple[Arrived, ...]
    cause: int
    because: str

    def __str__(self) -> str:
        rows = table([ARRIVED, *(each.cells for each in self.artifacts)])
        lines = [self.headline, *(f"  {row}" for row in rows), self.reason]
        return visible("\n".join(lines))

    @property
    def headline(self) -> str:
        """Who took how much into what."""
        took = f"{self.subscription or self.agent} took {counted(len(self.artifacts), 'artifact')}"
        into = f"run {self.opened}" if self.opened else f"turn {self.turn} of {self.agent}"
        line = f"At seq {self.seq}, {took} into {into}, run {self.run}"
        return line if self.asked == self.seq else f"{_next(self.asked)}\n{line}"

    @property
    def reason(self) -> str:
        """What completed the set."""
        where = f" (seq {self.cause})" if self.cause else ""
        return f"Because{where}: {self.because}"


def _next(asked: int) -> str:
    return f"At seq {asked}, nothing was offered or taken; the next time after it:"
