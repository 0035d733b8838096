"""Events of flows."""

from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.assembly.spec import Message
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact


class StateGiven(Fact, frozen=True):
    """The initial state of a flow's run."""

    kind: ClassVar[str] = "state.given"
    state: dict[str, Json]


class StateMigrated(Fact, frozen=True):
    """The model of the state changed since the run started: the migrated states, by strand."""

    kind: ClassVar[str] = "state.migrated"
    states: dict[str, dict[str, Json]]


class StepStarted(Fact, frozen=True):
    """A step is about to begin.

    `place` is its position in the flow, `strand` the parallel strand that it belongs to; `turn` is
    the turn of its agent, and `undoes` the place of the step that it compensates.
    """

    kind: ClassVar[str] = "step.started"
    step: str
    place: str
    number: int
    attempt: int
    strand: str = ""
    turn: int = 0
    undoes: str = ""


class StepCompleted(Fact, frozen=True):
    """A step changed the fields in `update`; `reduced` has the new values of fields whose reducer
    is user code. `cached` means that the result came from the cache, and the step did not run;
    `said` has the messages that its agent keeps in a thread. `kept`: the result is that of
    execution `number` before a retry."""

    kind: ClassVar[str] = "step.completed"
    recorded: ClassVar[frozenset[str]] = frozenset({"said"})
    step: str
    place: str
    number: int
    attempt: int
    update: dict[str, Json]
    reduced: dict[str, Json] = {}
    confidence: float | None = None
    is_unsure: bool = False
    strand: str = ""
    cached: bool = False
    thread: str = ""
    said: tuple[Message, ...] = ()
    kept: bool = False


class StepRetried(Fact, frozen=True):
    """An attempt failed; the next begins at `due`."""

    kind: ClassVar[str] = "step.retried"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    step: str
    place: str
    number: int
    attempt: int
    error: str
    message: str
    due: datetime | None = None


class StepFailed(Fact, frozen=True):
    """A step failed after its last attempt; `handler` is the path that handles it, if any. `what`
    names what failed if it was not a step, such as the condition of a loop. `kept`: it failed
    before a retry."""

    kind: ClassVar[str] = "step.failed"
    recorded: ClassVar[frozenset[str]] = frozenset({"message", "stack"})
    step: str
    place: str
    number: int
    attempt: int
    error: str
    message: str
    stack: str = ""
    frame: str = ""
    strand: str = ""
    handler: str = ""
    at: datetime | None = None
    what: str = ""
    kept: bool = False


class StepRecovered(Fact, frozen=True):
    """A failure was handled, and the flow continues."""

    kind: ClassVar[str] = "step.recovered"
    step: str
    place: str
    strand: str = ""


class StepHandled(Fact, frozen=True):
    """The path for a failure ended, and the flow still fails."""

    kind: ClassVar[str] = "step.handled"
    step: str
    place: str
    strand: str = ""


class StepSkipped(Fact, frozen=True):
    """An open step was stopped; it has no result."""

    kind: ClassVar[str] = "step.skipped"
    step: str
    place: str
    number: int
    reason: str


class StepCompensated(Fact, frozen=True):
    """A step was compensated, or its compensation failed."""

    kind: ClassVar[str] = "step.compensated"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    step: str
    place: str
    number: int
    by: str
    update: dict[str, Json] = {}
    reduced: dict[str, Json] = {}
    error: str = ""
    message: str = ""


class BranchTaken(Fact, frozen=True):
    """A branch took the path of a value; `path` is empty if the value has none."""

    kind: ClassVar[str] = "branch.taken"
    branch: str
    place: str
    value: Json
    path: str
    case: str = ""
    strand: str = ""


class ForkOpened(Fact, frozen=True):
    """The paths of a fork began, each from the same state."""

    kind: ClassVar[str] = "fork.opened"
    fork: str
    place: str
    paths: tuple[str, ...]
    strand: str = ""


class PathEnded(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a path of a fork ended."""

    name: str
    status: str
    error: str = ""


class ForkJoined(Fact, frozen=True):
    """All paths of a fork ended, and their changes were merged into one state, in declared
    order."""

    kind: ClassVar[str] = "fork.joined"
    recorded: ClassVar[frozenset[str]] = frozenset({"paths"})
    fork: str
    place: str
    paths: tuple[PathEnded, ...]
    reduced: dict[str, Json] = {}
    strand: str = ""


class ForkFailed(Fact, frozen=True):
    """A path of a fork failed, and the others were stopped; the enclosing path handles it."""

    kind: ClassVar[str] = "fork.failed"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    fork: str
    place: str
    path: str
    error: str
    message: str
    strand: str = ""


class LoopPassed(Fact, frozen=True):
    """A pass of a loop ended; `held` says whether its condition holds now."""

    kind: ClassVar[str] = "loop.passed"
    loop: str
    place: str
    number: int
    held: bool
    strand: str = ""


class LoopEnded(Fact, frozen=True):
    """A loop ended: its condition holds, or it reached its maximum of passes."""

    kind: ClassVar[str] = "loop.ended"
    loop: str
    place: str
    passes: int
    reason: str
    strand: str = ""


class ApprovalDecided(Fact, frozen=True):
    """An approver decided, deferred, or did not answer in time; `path` is taken then, and `to` is
    asked next. `kept`: the decision was made before a retry."""

    kind: ClassVar[str] = "approval.decided"
    recorded: ClassVar[frozenset[str]] = frozenset({"option", "instructions"})
    approval: str
    place: str
    approver: str
    outcome: str
    option: str = ""
    instructions: str = ""
    by: str = ""
    path: str = ""
    to: str = ""
    strand: str = ""
    kept: bool = False


class FlowStopped(Fact, frozen=True):
    """A flow was stopped because of `cause`; its completed steps are compensated."""

    kind: ClassVar[str] = "flow.stopped"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    cause: str
    error: str
    message: str


class FlowRewound(Fact, frozen=True):
    """A flow is walked again from its start, because steps of it were compensated.

    `state` is the initial state, `kept` has the positions of the results and decisions that still
    count, by place, and `undone` the scopes of interrupted steps that were compensated: these begin
    anew, other interrupted ones continue.
    """

    kind: ClassVar[str] = "flow.rewound"
    state: dict[str, Json]
    kept: dict[str, int] = {}
    undone: tuple[str, ...] = ()
