"""Events of a run as a whole."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.log.spec import Fact


class RunStarted(Fact, frozen=True):
    """A run started, pinned to the stored `definition` without the parts in `set_aside`.

    `form` decides whose turn it is. On a board, `correlation` groups related runs, `parents` are
    the runs that published its first artifacts, and `collects` is the subscription that it collects
    for. `request` is the digest of the input of a flow that was started under an id.
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
    request: str = ""


class RunPaused(Fact, frozen=True):
    """The run waits, until `due` at the latest: for an answer to the question `waiting_for` (the
    cause is the event that asked it), or, if that is empty, for artifacts. While artifacts are
    collected, `collected` counts those there, and `wanted` those required, if that is fixed.
    """

    kind: ClassVar[str] = "run.paused"
    waiting_for: str
    due: datetime | None = None
    collected: int | None = None
    wanted: int | None = None


class RunResumed(Fact, frozen=True):
    """Another process resumed the run."""

    kind: ClassVar[str] = "run.resumed"
    changed_code: tuple[str, ...] = ()


class RunLimited(Fact, frozen=True):
    """The drive that begins here waited `seconds` for the limit of its tenant: the `reason` is what
    that allows."""

    kind: ClassVar[str] = "run.limited"
    reason: str
    seconds: float


class Pin(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """The definition that a run continues with, in place of the one that it started with."""

    workflow_version: str
    definition: str
    root: str
    files: Mapping[str, str]
    code: Mapping[str, str]
    set_aside: tuple[str, ...] = ()


class RunRetried(Fact, frozen=True):
    """A run that had ended continues.

    `voided` are ranges of positions: the events in them stay in the log, but no longer count.
    `since` names the turn, step or event from which the run is done again; empty: what failed.
    `pin` is the new definition, if it was changed, and `changed` names the files or steps that
    differ. `budget` raises limits of the run's budget. `tools` says what becomes of calls that it
    makes again: see `RunForked`.
    """

    kind: ClassVar[str] = "run.retried"
    recorded: ClassVar[frozenset[str]] = frozenset({"since"})
    by: str
    voided: tuple[tuple[int, int], ...] = ()
    since: str = ""
    changed: tuple[str, ...] = ()
    pin: Pin | None = None
    budget: Mapping[str, float] = {}
    tools: str = "live"


class RunForked(Fact, frozen=True):
    """A run began with the events of the run `of` up to position `at`, the last of which was
    recorded at `since`.

    `tools` says what becomes of calls that touch the world: `live` ones are made; otherwise a call
    that equals one of the original has its recorded result, and another one is refused
    (`recorded`), or put to the run's user (`ask`). `pin` and `changed` are as in `RunRetried`;
    `values` names the variables that were set. If it `continues`, that run had ended, and a message
    of its user began this one.
    """

    kind: ClassVar[str] = "run.forked"
    recorded: ClassVar[frozenset[str]] = frozenset({"of"})
    of: str
    at: int
    by: str
    since: datetime
    tools: str = "ask"
    changed: tuple[str, ...] = ()
    pin: Pin | None = None
    values: tuple[str, ...] = ()
    continues: bool = False


class RunFinished(Fact, frozen=True):
    """The run ended successfully."""

    kind: ClassVar[str] = "run.finished"
    reason: str = ""


class RunFailed(Fact, frozen=True):
    """The run ended with an error."""

    kind: ClassVar[str] = "run.failed"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    error: str
    message: str


class CancelRequested(Fact, frozen=True):
    """Cancellation of the run was requested."""

    kind: ClassVar[str] = "cancel.requested"
    by: str
    reason: str = ""


class RunCancelled(Fact, frozen=True):
    """The run was cancelled."""

    kind: ClassVar[str] = "run.cancelled"
    recorded: ClassVar[frozenset[str]] = frozenset({"reason"})
    by: str
    reason: str = ""


# The kinds of a run's last event.
ENDS = frozenset({RunFinished.kind, RunFailed.kind, RunCancelled.kind})
