"""Events between an artifact and the turns that it causes."""

from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.board.spec import Artifact
from turnloom.log.spec import Fact


class SubscriptionVerdict(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Verdict of a subscription on an artifact: `taken`, `forwarded` to the run that collects for
    it, `later`, or the reason to ignore it. `key` is the join key (as JSON), or else the
    correlation; `opens` is when it becomes visible."""

    subscription: str
    verdict: str
    detail: str = ""
    key: str = ""
    opens: datetime | None = None


class ArtifactOffered(Fact, frozen=True):
    """An artifact was offered to the subscriptions to its type, with the verdict of each."""

    kind: ClassVar[str] = "artifact.offered"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact", "to"})
    artifact: str
    at: datetime
    to: tuple[SubscriptionVerdict, ...]


class ArtifactOpened(Fact, frozen=True):
    """An artifact became visible to a subscription; it is offered again."""

    kind: ClassVar[str] = "artifact.opened"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: str
    subscription: str


class ArtifactReceived(Fact, frozen=True):
    """The run that collects for a subscription received an artifact of another run; `depth` is the
    number of turns in a row that led to it, and `root` the artifact that started them, if any."""

    kind: ClassVar[str] = "artifact.received"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact", "root"})
    artifact: Artifact
    depth: int = 0
    root: str = ""


class ArtifactsGiven(Fact, frozen=True):
    """An agent gets artifacts: a set collected for its subscription, or those of a direct call.
    Unless `publish`, its products are not published. `depth` is the number of turns in a row that
    led to them, in other runs, and `root` the artifact that started them, if any."""

    kind: ClassVar[str] = "artifacts.given"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifacts", "root"})
    agent: str
    artifacts: tuple[Artifact, ...]
    subscription: str = ""
    publish: bool = True
    depth: int = 0
    root: str = ""


class RunOpened(Fact, frozen=True):
    """A run was started for a collected set; or was not, in a fork: it is `refused`."""

    kind: ClassVar[str] = "run.opened"
    recorded: ClassVar[frozenset[str]] = frozenset({"run", "artifacts"})
    run: str
    artifacts: tuple[str, ...]
    refused: bool = False


class ArtifactForwarded(Fact, frozen=True):
    """An artifact was forwarded to the run that collects for a subscription; or was not, in a fork:
    it is `refused`."""

    kind: ClassVar[str] = "artifact.forwarded"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: str
    subscription: str
    refused: bool = False


class JoinExpired(Fact, frozen=True):
    """Artifacts waited too long for others with their key, and were dropped from the join."""

    kind: ClassVar[str] = "join.expired"
    recorded: ClassVar[frozenset[str]] = frozenset({"key", "artifacts"})
    subscription: str
    key: str
    artifacts: tuple[str, ...]


class BatchClosed(Fact, frozen=True):
    """A batch was closed before it was full: it timed out, or the board was closed."""

    kind: ClassVar[str] = "batch.closed"
    subscription: str
    reason: str


class RetryAsked(Fact, frozen=True):
    """A retry of a failed turn was requested."""

    kind: ClassVar[str] = "retry.asked"
    turn: int
    by: str


class LimitReached(Fact, frozen=True):
    """One publish caused the maximum number of turns; the run stops, with these undelivered."""

    kind: ClassVar[str] = "limit.reached"
    recorded: ClassVar[frozenset[str]] = frozenset({"root", "undelivered"})
    limit: int
    root: str
    undelivered: tuple[str, ...]


class SampleChosen(Fact, frozen=True):
    """The best of several samples of one turn was chosen; a failed sample has no score."""

    kind: ClassVar[str] = "sample.chosen"
    turn: int
    agent: str
    scores: tuple[float | None, ...]
    chosen: int
