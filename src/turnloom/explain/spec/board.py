"""Explanations of boards: why a turn was woken, what it published, and who was offered an
artifact."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from turnloom.explain.spec.route import NO_CHANGE, ChangedValue, FailedPart, ShownSelection
from turnloom.explain.spec.text import (
    ReadableExplanation,
    counted,
    duration,
    moment,
    one_line,
    table,
)
from turnloom.kernel.markup import visible


class ArtifactName(msgspec.Struct, frozen=True):
    """The identity and origin of an artifact, without its payload."""

    seq: int
    id: str
    type: str
    produced_by: str
    run: str
    parents: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells: id, type, producer, run, parents."""
        return self.id, self.type, self.produced_by, self.run, ", ".join(self.parents) or "-"


NAMED = ("id", "type", "produced by", "in run", "made from")


class WakeReason(msgspec.Struct, frozen=True):
    """Why a turn on a board was taken: the subscription and the artifacts that it took.

    Without a subscription, the artifacts were given to the agent directly. `retry_of` is the failed
    turn that is tried again.
    """

    seq: int
    subscription: str
    artifacts: tuple[ArtifactName, ...]
    retry_of: int = 0

    @property
    def says(self) -> str:
        """The reason as one line."""
        by = f"Woken by {self.subscription}" if self.subscription else "Given directly"
        again = f", retry of turn {self.retry_of}" if self.retry_of else ""
        return f"{by} (seq {self.seq}) with {counted(len(self.artifacts), 'artifact')}{again}:"

    @property
    def lines(self) -> list[str]:
        """The reason, then the artifacts, one line each."""
        return [self.says, *indented(self.artifacts)]


def indented(artifacts: Sequence[ArtifactName]) -> list[str]:
    """Artifacts as an indented table with a header."""
    head, *rest = table([NAMED, *(each.cells for each in artifacts)])
    return [f"  {line}" for line in (head, *rest)]


class ProviderEntry(msgspec.Struct, frozen=True, tag="provider"):
    """One call of a provider: its path, its number of items, and its duration in microseconds."""

    seq: int
    provider: str
    items: int
    micros: int
    error: str = ""

    @property
    def says(self) -> str:
        """The result of the call, as one line."""
        took = duration(self.micros / 1_000_000)
        gave = f"failed with {self.error} after" if self.error else f"gave {items(self.items)} in"
        return f"{self.provider} {gave} {took}"


class FailedProviderEntry(msgspec.Struct, frozen=True, tag="failed provider"):
    """A failed call of a provider, and the fallback that was asked instead."""

    seq: int
    provider: str
    error: str
    message: str
    fallback: str = ""

    @property
    def says(self) -> str:
        """The failure and the fallback, as one line."""
        instead = f"; fallback: {self.fallback}" if self.fallback else ""
        return f"{self.provider} failed: {self.error}: {one_line(self.message, 200)}{instead}"


class OfferEntry(msgspec.Struct, frozen=True, tag="offer"):
    """The verdict of a subscription on an artifact, and its effect.

    Of a refusal, `failed` are the parts that did not hold, and `needed` is the smallest set of
    values, at most two, that the subscription would have taken; `unknown` is why that is not known.
    """

    seq: int
    subscription: str
    verdict: str
    what: str
    opens: datetime | None = None
    failed: tuple[FailedPart, ...] = ()
    needed: tuple[ChangedValue, ...] = ()
    unknown: str = ""

    @property
    def refused(self) -> bool:
        """Whether the subscription refused the artifact."""
        return self.what.startswith("no: ")

    @property
    def otherwise(self) -> str:
        """The parts that failed, and what the subscription would have taken, as one line."""
        failed = "; ".join(each.says for each in self.failed)
        needed = " and ".join(each.says for each in self.needed)
        instead = f"had {needed}" if needed else self.unknown or NO_CHANGE
        return f"{self.subscription} ({failed}): {instead}"

    @property
    def description(self) -> str:
        """The verdict in words, with the time from which the artifact is visible."""
        return f"{self.what} (from {moment(self.opens)} on)" if self.opens else self.what

    @property
    def says(self) -> str:
        """The subscription and its verdict, as one line."""
        return f"{self.subscription}: {self.description}"


class ChoiceEntry(msgspec.Struct, frozen=True, tag="choice"):
    """The chosen one of several tries of a turn; `chosen` counts from 1."""

    seq: int
    chosen: int
    scores: tuple[float | None, ...]

    @property
    def says(self) -> str:
        """The choice with all scores, as one line."""
        scores = ", ".join("failed" if each is None else f"{each:g}" for each in self.scores)
        return f"try {self.chosen} of {len(self.scores)} counts (scores: {scores})"


class ContextEntry(msgspec.Struct, frozen=True, tag="context"):
    """Context from a provider, or from its `fallback`.

    `outcome` is `gathered`, or `failed` if every provider failed. The frame lists the items and
    what each leaves out; `within` lists the calls of other providers.
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
        """The provider and its number of items, as one line."""
        if self.outcome == "failed":
            return f"no context: {self.provider} failed"
        instead = ", the fallback," if self.fallback else ""
        gave = f"gave {items(self.items)} in {duration(self.seconds)}"
        return f"context: {self.provider}{instead} {gave}"


class ArtifactEntry(msgspec.Struct, frozen=True, tag="artifact"):
    """An artifact of the turn and its offers; none if it was `made` without being published."""

    seq: int
    artifact: ArtifactName
    made: bool
    within: tuple[OfferEntry, ...]

    @property
    def says(self) -> str:
        """The artifact and its parents, as one line."""
        did = "made, not published:" if self.made else "published"
        origin = f", made from {', '.join(self.artifact.parents)}" if self.artifact.parents else ""
        return f"{did} {self.artifact.type} {self.artifact.id}{origin}"


def items(count: int) -> str:
    """Format a number of items."""
    return counted(count, "item") if count else "no items"


class OfferExplained(ReadableExplanation, frozen=True):
    """The verdict of every subscription on an artifact.

    `seq` is the event that offered the artifact, or that published it if it was not offered.
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
        """The artifact and the event that offered it."""
        did = "offered" if self.offered else "not offered"
        line = f"Artifact {self.artifact.id} {did} at seq {self.seq}, run {self.run}"
        is_meant = self.asked in (self.seq, self.artifact.seq)
        return line if is_meant else f"{_next(self.asked)}\n{line}"

    @property
    def no_verdicts(self) -> str:
        """The line shown instead of verdicts if no subscription was considered."""
        if self.offered:
            return "Subscriptions: none considered"
        return f"Subscriptions: none takes {self.artifact.type} here, or it is not judged yet"

    def _verdicts(self) -> list[str]:
        if not self.to:
            return [self.no_verdicts]
        rows = [(f"  {each.subscription}", each.description) for each in self.to]
        return ["Subscriptions considered, in order:", *table(rows), *self.otherwise, *self.choice]

    @property
    def otherwise(self) -> list[str]:
        """What each subscription that refused the artifact would have taken, one line each."""
        lines = [f"  {each.otherwise}" for each in self.to if each.failed]
        return ["Would have been taken:", *lines] if lines else []

    @property
    def choice(self) -> list[str]:
        """The candidate that a guard selected, with the draws."""
        return self.selection.lines if self.selection else []


class ArrivedArtifact(msgspec.Struct, frozen=True):
    """An artifact of a consumed set, with the event and time of its offer."""

    artifact: ArtifactName
    seq: int
    at: datetime | None

    @property
    def cells(self) -> tuple[str, ...]:
        """Table cells: event and time of the offer, then those of the artifact."""
        offered = str(self.seq) if self.seq else "-"
        return offered, moment(self.at) if self.at else "-", *self.artifact.cells


ARRIVED = ("offered at", "when", *NAMED)


class ConsumptionExplained(ReadableExplanation, frozen=True):
    """Why a subscription consumed a set of artifacts at this moment.

    `because` describes what completed the set, and `cause` is that event.
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
        """The subscription, the number of artifacts, and the turn or run that got them."""
        took = f"{self.subscription or self.agent} took {counted(len(self.artifacts), 'artifact')}"
        into = f"run {self.opened}" if self.opened else f"turn {self.turn} of {self.agent}"
        line = f"At seq {self.seq}, {took} into {into}, run {self.run}"
        return line if self.asked == self.seq else f"{_next(self.asked)}\n{line}"

    @property
    def reason(self) -> str:
        """The event that completed the set."""
        where = f" (seq {self.cause})" if self.cause else ""
        return f"Because{where}: {self.because}"


def _next(asked: int) -> str:
    return f"Nothing was offered or taken at seq {asked}. Next:"
