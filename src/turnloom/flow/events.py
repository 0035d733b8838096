"""What happened in flows."""

from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.assembly.spec import Message
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact


class StateGiven(Fact, frozen=True):
    """The state that a run of a flow begins with."""

    kind: ClassVar[str] = "state.given"
    state: dict[str, Json]


class StateMigrated(Fact, frozen=True):
    """The model of the state changed since the run began: states as it has them now, by the lines
    of work that have them."""

    kind: ClassVar[str] = "state.migrated"
    states: dict[str, dict[str, Json]]


class StepStarted(Fact, frozen=True):
    """A step is about to be taken; it has not begun yet.

    `place` says where in the flow, `strand` in which line of work; `turn` is the turn of its agent,
    and `undoes` the place of the step that it makes up for.
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
    """A step changed these fields of the state; `reduced` has those as they are now whose reducer
    is code of the program. `cached` says that the change was known, and nothing was done; `said` is
    what its agent will remember in a thread."""

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


class StepRetried(Fact, frozen=True):
    """An attempt failed, and there is another one, not before `due`."""

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
    """A step failed for good; `handler` is the path that handles it, if one does. `what` says what
    failed where that was no step, such as the condition of a loop."""

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


class StepRecovered(Fact, frozen=True):
    """A failure was handled, and the flow goes on."""

    kind: ClassVar[str] = "step.recovered"
    step: str
    place: str
    strand: str = ""


class StepHandled(Fact, frozen=True):
    """What handles a failure was done, and the flow still does not go on."""

    kind: ClassVar[str] = "step.handled"
    step: str
    place: str
    strand: str = ""


class StepSkipped(Fact, frozen=True):
    """A step that was being taken was stopped, and nothing comes of it."""

    kind: ClassVar[str] = "step.skipped"
    step: str
    place: str
    number: int
    reason: str


class StepCompensated(Fact, frozen=True):
    """A step was made up for by another one, or that failed."""

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
    """The state had a value, and the path of that value is walked; without a path, none is."""

    kind: ClassVar[str] = "branch.taken"
    branch: str
    place: str
    value: Json
    path: str
    case: str = ""
    strand: str = ""


class ForkOpened(Fact, frozen=True):
    """Paths are walked at once from here, each from the same state."""

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
    """All paths of a fork ended, and their changes are one state again, in the order in which they
    are declared."""

    kind: ClassVar[str] = "fork.joined"
    recorded: ClassVar[frozenset[str]] = frozenset({"paths"})
    fork: str
    place: str
    paths: tuple[PathEnded, ...]
    reduced: dict[str, Json] = {}
    strand: str = ""


class ForkFailed(Fact, frozen=True):
    """A path of a fork failed, and the others are stopped: what the fork stands in handles it."""

    kind: ClassVar[str] = "fork.failed"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    fork: str
    place: str
    path: str
    error: str
    message: str
    strand: str = ""


class LoopPassed(Fact, frozen=True):
    """The path of a loop was walked once more; `held` says whether its condition holds now."""

    kind: ClassVar[str] = "loop.passed"
    loop: str
    place: str
    number: int
    held: bool
    strand: str = ""


class LoopEnded(Fact, frozen=True):
    """A loop is over: its condition holds, or it was walked as often as it may be."""

    kind: ClassVar[str] = "loop.ended"
    loop: str
    place: str
    passes: int
    reason: str
    strand: str = ""


class ApprovalDecided(Fact, frozen=True):
    """An approver decided, asked for more time, or did not answer; `path` is walked then, and `to`
    is asked next."""

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


class FlowStopped(Fact, frozen=True):
    """A flow is not to go on: `cause` says why, and what was done is made up for."""

    kind: ClassVar[str] = "flow.stopped"
    recorded: ClassVar[frozenset[str]] = frozenset({"message"})
    cause: str
    error: str
    message: str
