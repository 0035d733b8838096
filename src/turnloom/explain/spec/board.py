"""What boards add: what woke a turn, what it published, who was offered an artifact."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from turnloom.explain.spec.route import ShownSelection
from turnloom.explain.spec.text import (
    ReadableExplanation,
    counted,
    lasting,
    moment,
    one_line,
    table,
)
from turnloom.kernel.markup import visible


class ArtifactName(msgspec.Struct, frozen=True):
    """An artifact by its name: everything that says where it comes from, and nothing it says."""

    seq: int
    id: str
    type: str
    produced_by: str
    run: str
    parents: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The artifact as texts: id, type, producer, run, parents."""
        return self.id, self.type, self.produced_by, self.run, ", ".join(self.parents) or "-"


NAMED = ("id", "type", "produced by", "in run", "made from")


class WakeReason(msgspec.Struct, frozen=True):
    """Why a turn on a board was taken: which subscription took which artifacts.

    Without a subscription, somebody gave them to the agent directly. `retry_of` is the turn that
    failed with them before.
    """

    seq: int
    subscription: str
    artifacts: tuple[ArtifactName, ...]
    retry_of: int = 0

    @property
    def says(self) -> str:
        """What woke the agent, in a line."""
        by = f"Woken by {self.subscription}" if self.subscription else "Given directly"
        again = f", once more after turn {self.retry_of}" if self.retry_of else ""
        return f"{by} (seq {self.seq}) with {counted(len(self.artifacts), 'artifact')}{again}:"

    @property
    def lines(self) -> list[str]:
        """What woke the agent, and each artifact in a line."""
        return [self.says, *indented(self.artifacts)]


def indented(artifacts: Sequence[ArtifactName]) -> list[str]:
    """Artifacts by name, a line each, under a head."""
    head, *rest = table([NAMED, *(each.cells for each in artifacts)])
    return [f"  {line}" for line in (head, *rest)]


class ProviderEntry(msgspec.Struct, frozen=True, tag="provider"):
    """One call of a provider, inside whom: how many items it gave in how many microseconds."""

    seq: int
    provider: str
    items: int
    micros: int
    error: str = ""

    @property
    def says(self) -> str:
        """What the call came to."""
        took = lasting(self.micros / 1_000_000)
        gave = f"failed with {self.error} after" if self.error else f"gave {items(self.items)} in"
        return f"{self.provider} {gave} {took}"


class FailedProviderEntry(msgspec.Struct, frozen=True, tag="failed provider"):
    """A provider that gave nothing, and who was asked in its place."""

    seq: int
    provider: str
    error: str
    message: str
    fallback: str = ""

    @property
    def says(self) -> str:
        """What went wrong, and what was done about it."""
        instead = f"; asked in its place: {self.fallback}" if self.fallback else ""
        return f"{self.provider} failed: {self.error}: {one_line(self.message, 200)}{instead}"


class OfferEntry(msgspec.Struct, frozen=True, tag="offer"):
    """What a subscription made of an artifact, and what came of that."""

    seq: int
    subscription: str
    verdict: str
    what: str
    opens: datetime | None = None

    @property
    def refused(self) -> bool:
        """Whether the artifact is not for the subscription."""
        return self.what.startswith("no: ")

    @property
    def told(self) -> str:
        """The verdict in words, with the instant from which the artifact can be seen."""
        return f"{self.what} (from {moment(self.opens)} on)" if self.opens else self.what

    @property
    def says(self) -> str:
        """Whose verdict it is, in words."""
        return f"{self.subscription}: {self.told}"


class ChoiceEntry(msgspec.Struct, frozen=True, tag="choice"):
    """Which of several tries of the turn counts; `chosen` is from 1."""

    seq: int
    chosen: int
    scores: tuple[float | None, ...]

    @property
    def says(self) -> str:
        """The choice with all scores."""
        scores = ", ".join("failed" if each is None else f"{each:g}" for each in self.scores)
        return f"try {self.chosen} of {len(self.scores)} counts (scores: {scores})"


class ContextEntry(msgspec.Struct, frozen=True, tag="context"):
    """Context that was gathered from a provider, or from the `fallback` in its place.

    `outcome` is `gathered`, or `failed` if nobody gave any. Which items there are, and what each
    leaves out, the frame says; who else was asked on the way stands within.
    """

    seq: int
    provider: str
    outcome: str
    items: int
    seconds: float
    fallback: bool
    within: tuple[ProviderEntry | FailedProviderEntry, ...]

    @property
    def says(self) -> str:
        """Who gave how much."""
        if self.outcome == "failed":
            return f"no context: {self.provider} failed"
        instead = ", the fallback," if self.fallback else ""
        gave = f"gave {items(self.items)} in {lasting(self.seconds)}"
        return f"context: {self.provider}{instead} {gave}"


class ArtifactEntry(msgspec.Struct, frozen=True, tag="artifact"):
    """An artifact that the turn made, and to whom it was offered; not if it was only `made`."""

    seq: int
    artifact: ArtifactName
    made: bool
    within: tuple[OfferEntry, ...]

    @property
    def says(self) -> str:
        """What was made, from what."""
        did = "made, for who asked alone," if self.made else "published"
        origin = f", made from {', '.join(self.artifact.parents)}" if self.artifact.parents else ""
        return f"{did} {self.artifact.type} {self.artifact.id}{origin}"


def items(count: int) -> str:
    """How many items were given."""
    return counted(count, "item") if count else "no items"


class OfferExplained(ReadableExplanation, frozen=True):
    """What every subscription made of an artifact, and why it was not for some of them.

    `seq` is where it was offered, or where it came if it was not.
    """

    run: str
    seq: int
    asked: int
    artifact: ArtifactName
    offered: bool
    to: tuple[OfferEntry, ...]
    selection: ShownSelection | None = None

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


class ArrivedArtifact(msgspec.Struct, frozen=True):
    """An artifact of a set: where and when it was offered to the subscription."""

    artifact: ArtifactName
    seq: int
    at: datetime | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The artifact as texts: where it was offered and when, then its name."""
        offered = str(self.seq) if self.seq else "-"
        return offered, moment(self.at) if self.at else "-", *self.artifact.cells


ARRIVED = ("offered at", "when", *NAMED)


class ConsumptionExplained(ReadableExplanation, frozen=True):
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
    artifacts: tuple[ArrivedArtifact, ...]
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
