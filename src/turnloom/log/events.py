"""What happened to a run as a whole."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from turnloom.log.spec import Fact


class RunStarted(Fact, frozen=True):
    """A run began, pinned to the definition stored here, without the parts that are set aside.

    `form` says what decides in it whose turn it is. On a board, `correlation` is what the run is
    about, `parents` are the runs that its first artifacts come from, and `collects` the
    subscription that it collects for.
    """

    kind: ClassVar[str] = "run.started"
    recorded: ClassVar[frozenset[str]] = frozenset({"correlation", "parents", "collects"})
    workflow: str
    workflow_version: str
    definition: str
    root: str
    files: Mapping[str, str]
    code: Mapping[str, str]
    tenant: str = ""
    user: str = ""
    set_aside: tuple[str, ...] = ()
    form: str = "conversation"
    correlation: str = ""
    parents: tuple[str, ...] = ()
    collects: str = ""


class RunPaused(Fact, frozen=True):
    """The run waits: for a question to be answered (its cause is where that was asked), or, with
    none named, for something to be published, until `due` at the latest. Where artifacts wait for
    others, `collected` says how many are there, and `wanted` how many it takes, if that is fixed.
    """

    kind: ClassVar[str] = "run.paused"
    waiting_for: str
    due: datetime | None = None
    collected: int | None = None
    wanted: int | None = None


class RunResumed(Fact, frozen=True):
    """Another process took the run up where it stood."""

    kind: ClassVar[str] = "run.resumed"
    changed_code: tuple[str, ...] = ()


class RunFinished(Fact, frozen=True):
    """The run did what it was for."""

    kind: ClassVar[str] = "run.finished"
    reason: str = ""


class RunFailed(Fact, frozen=True):
    """The run could not go on."""

    kind: ClassVar[str] = "run.failed"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    error: str
    message: str


class CancelRequested(Fact, frozen=True):
    """Somebody wants the run to end now."""

    kind: ClassVar[str] = "cancel.requested"
    by: str
    reason: str = ""


class RunCancelled(Fact, frozen=True):
    """The run ended because somebody wanted it to."""

    kind: ClassVar[str] = "run.cancelled"
    recorded: ClassVar[frozenset[str]] = frozenset({"reason"})
    by: str
    reason: str = ""


# Nothing follows one of these.
ENDS = frozenset({RunFinished.kind, RunFailed.kind, RunCancelled.kind})
