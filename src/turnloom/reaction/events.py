"""What happened on the way from artifacts to turns."""

from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.board.spec import Artifact
from turnloom.log.spec import Fact


class SubscriptionVerdict(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a subscription makes of an artifact: `taken`, `forwarded` to the run that collects for
    it, `later`, or why it is not for it. `key` is what it is joined by (as JSON), or else its
    correlation; `opens` is when it can be seen."""

    subscription: str
    verdict: str
    detail: str = ""
    key: str = ""
    opens: datetime | None = None


class ArtifactOffered(Fact, frozen=True):
    """An artifact was offered to everybody who subscribes to its type; what each makes of it."""

    kind: ClassVar[str] = "artifact.offered"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact", "to"})
    artifact: str
    at: datetime
    to: tuple[SubscriptionVerdict, ...]


class ArtifactOpened(Fact, frozen=True):
    """The instant came from which an artifact can be seen; it is offered again."""

    kind: ClassVar[str] = "artifact.opened"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: str
    subscription: str


class ArtifactReceived(Fact, frozen=True):
    """An artifact of another run came to the run that collects for a subscription; `depth` is how
    many turns in a row led to it, and `root` the artifact whose publish set them off, if there were
    any."""

    kind: ClassVar[str] = "artifact.received"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact", "root"})
    artifact: Artifact
    depth: int = 0
    root: str = ""


class ArtifactsGiven(Fact, frozen=True):
    """An agent is given artifacts: a set that was collected for its subscription, or by somebody
    who calls it directly. Unless `publish`, nothing that it gives gets on the board. `depth` is how
    many turns in a row led to them, in other runs, and `root` the artifact whose publish set these
    off, if there were any."""

    kind: ClassVar[str] = "artifacts.given"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifacts", "root"})
    agent: str
    artifacts: tuple[Artifact, ...]
    subscription: str = ""
    publish: bool = True
    depth: int = 0
    root: str = ""


class RunOpened(Fact, frozen=True):
    """A set that was collected got a run of its own."""

    kind: ClassVar[str] = "run.opened"
    recorded: ClassVar[frozenset[str]] = frozenset({"run", "artifacts"})
    run: str
    artifacts: tuple[str, ...]


class ArtifactForwarded(Fact, frozen=True):
    """An artifact was handed to the run that collects for a subscription."""

    kind: ClassVar[str] = "artifact.forwarded"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: str
    subscription: str


class JoinExpired(Fact, frozen=True):
    """Artifacts waited too long for others with their key, and are not waited with any more."""

    kind: ClassVar[str] = "join.expired"
    recorded: ClassVar[frozenset[str]] = frozenset({"key", "artifacts"})
    subscription: str
    key: str
    artifacts: tuple[str, ...]


class BatchClosed(Fact, frozen=True):
    """A batch is taken as it is: its time is over, or the board was closed."""

    kind: ClassVar[str] = "batch.closed"
    subscription: str
    reason: str


class RetryAsked(Fact, frozen=True):
    """Somebody wants that what a failed turn took is taken again."""

    kind: ClassVar[str] = "retry.asked"
    turn: int
    by: str


class LimitReached(Fact, frozen=True):
    """One publish set off as many turns as one may; the run stops, and these were not delivered."""

    kind: ClassVar[str] = "limit.reached"
    recorded: ClassVar[frozenset[str]] = frozenset({"root", "undelivered"})
    limit: int
    root: str
    undelivered: tuple[str, ...]


class SampleChosen(Fact, frozen=True):
    """Of several tries of one turn, the best one counts; a try that failed has no score."""

    kind: ClassVar[str] = "sample.chosen"
    turn: int
    agent: str
    scores: tuple[float | None, ...]
    chosen: int
