"""Every error Turnloom raises, in one tree, and the diagnostics that checks give.

TurnloomError                 anything Turnloom says no to; has a stable `code`
├── DefinitionError       a workflow that does not pass its check; carries all diagnostics
├── UsageError            a call that cannot mean anything: wrong answer, closed app, bad setting
│   ├── UnknownRun        no run of that id
│   ├── WorkflowGone      the folder of a run's workflow is not there any more
│   ├── UnknownFlow       a run of a flow that this program does not have
│   └── NotYours          a question of another user or tenant
├── LogError              the log refused or could not store
│   ├── Conflict          the log is at another position, or holds that id already
│   ├── LeaseLost         another process took the run over: this one did not respond in time
│   ├── UnknownKind       an event of a kind, version or shape that this release does not know
│   │   └── LogDamaged    events of a run are missing in the store
│   └── StoreUnavailable  the store cannot be written or read now: full disk, locked, damaged
├── BoardError            the board says no
│   ├── InvalidArtifact   an artifact, a payload or a visibility that cannot be
│   ├── ArtifactExists    an artifact of this id is there, with other content
│   ├── UnknownType       no type of artifacts has that name, or several have it
│   ├── ReactionFailed    an agent could not do what artifacts woke it for
│   ├── PredicateFailed   a condition or the key of a join raised, or gave no answer
│   ├── LoopLimit         one publish set off as many turns as one may
│   └── PlanChanged       a run is pinned to another plan of its board
├── FlowError             a flow could not do what it is for
│   ├── InvalidUpdate     a state, or what a step gives, that the flow's state cannot be
│   └── FlowFailed        a run of a flow failed, or was cancelled (beside `Outcome`)
├── MissingContext        a run cannot start or go on: values that it needs are missing
├── ContextUnavailable    no provider gave context for a turn
├── ContextTooLarge       there is no room for what a turn is shown: in a budget or a window
├── DocumentsUnavailable  a document store does not answer, in time or at all
├── CollectionUnavailable a collection cannot be searched or filled now
├── NoCandidates          a selection has nobody left who can be chosen
├── RunBusy               another process drives the run
├── WriteRefused          a variable cannot be written, or not with this value
├── QuestionExpired       nobody answered a question in time
├── ToolServerError       a server of tools cannot be reached, or a tool of it failed
├── BudgetExceeded        a run has no budget for what it is to do
├── LoopDetected          a run went round in circles
└── EngineError           an engine could not answer
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


class TurnloomError(Exception):
    """Anything Turnloom says no to."""

    code: ClassVar[str] = "TURNLOOM"


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One numbered problem in a declaration: where it is, what it is, what to do."""

    file: str
    line: int
    code: str
    message: str
    remedy: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}: {self.code} {self.message}"
        return f"{text} {self.remedy}" if self.remedy else text


class DefinitionError(TurnloomError):
    """A workflow that does not pass its check."""

    code = "TURNLOOM-DEFINITION"

    def __init__(self, name: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        lines = "\n".join(f"  {problem}" for problem in self.diagnostics)
        super().__init__(f"Workflow {name!r} does not pass its check:\n{lines}")


class UsageError(TurnloomError):
    """A call that cannot mean anything."""

    code = "TURNLOOM-USAGE"


class UnknownRun(UsageError):
    """No run of that id."""

    code = "TURNLOOM-UNKNOWN-RUN"

    def __init__(self, run: str) -> None:
        super().__init__(
            f"There is no run {run!r} in this store. `turnloom runs` lists what there is."
        )


class WorkflowGone(UsageError):
    """The folder of a run's workflow is not there any more, and its code is needed."""

    code = "TURNLOOM-WORKFLOW-GONE"


class UnknownFlow(UsageError):
    """A run belongs to a flow that this program does not have."""

    code = "TURNLOOM-UNKNOWN-FLOW"


class NotYours(UsageError):
    """A question that belongs to another user or tenant."""

    code = "TURNLOOM-NOT-YOURS"


class LogError(TurnloomError):
    """The log refused or could not store."""

    code = "TURNLOOM-LOG"


class Conflict(LogError):
    """The log is at another position, or holds that id already."""

    code = "TURNLOOM-CONFLICT"


class LeaseLost(LogError):
    """Another process took the run over, as this one did not respond in time."""

    code = "TURNLOOM-LEASE-LOST"

    def __init__(self, run: str) -> None:
        super().__init__(
            f"This process does not drive run {run!r} any more: it did not respond for longer than "
            "its lease, and another process took the run over. Nothing more is stored from here. "
            f"See what became of it with `turnloom runs`, and continue it with `turnloom resume "
            f"{run}`. If the process was only slow, set a longer `lease`."
        )


class UnknownKind(LogError):
    """An event of a kind, version or shape that this release does not know."""

    code = "TURNLOOM-UNKNOWN-KIND"


class LogDamaged(UnknownKind):
    """Events of a run are missing in the store."""

    code = "TURNLOOM-DAMAGED"

    def __init__(self, run: str, first: int, last: int | None = None) -> None:
        missing = f"event {first}" if first == last else f"events {first} to {last or 'the last'}"
        super().__init__(
            f"Run {run!r} is damaged: {missing} cannot be found in the store. Other runs are not "
            "concerned. `turnloom store verify` lists all that is damaged; put a backup in the "
            "place of the store, or leave this run."
        )


class StoreUnavailable(LogError):
    """The store cannot be written or read right now."""

    code = "TURNLOOM-STORE"


class BoardError(TurnloomError):
    """The board says no."""

    code = "TURNLOOM-BOARD"


class InvalidArtifact(BoardError, ValueError):
    """An artifact, a payload or a visibility that cannot be."""

    code = "TURNLOOM-ARTIFACT"


class ArtifactExists(BoardError):
    """An artifact of this id is there, with other content."""

    code = "TURNLOOM-ARTIFACT-EXISTS"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"Artifact {id!r} is on the board with other content, and artifacts never change. "
            "Publish the other content under an id of its own."
        )


class UnknownType(BoardError):
    """No type of artifacts has that name, or several have it."""

    code = "TURNLOOM-UNKNOWN-TYPE"


class ReactionFailed(BoardError):
    """An agent could not do what artifacts woke it for; `board.retry` lets it try again."""

    code = "TURNLOOM-REACTION"

    def __init__(self, run: str, turn: int, agent: str, error: str) -> None:
        self.run = run
        self.turn = turn
        self.agent = agent
        super().__init__(f"Agent {agent!r} failed in turn {turn} of run {run!r}: {error}")


class PredicateFailed(BoardError):
    """Code that decides whether an artifact is for a subscription failed; nothing was decided."""

    code = "TURNLOOM-PREDICATE"

    def __init__(self, run: str, subscription: str, artifact: str, error: str) -> None:
        self.run = run
        self.subscription = subscription
        self.artifact = artifact
        super().__init__(
            f"Subscription {subscription!r} could not tell whether artifact {artifact!r} of run "
            f"{run!r} is for it: {error}. Correct that code, and publish again."
        )


class LoopLimit(BoardError):
    """One publish set off as many turns as one may; what was not delivered is named."""

    code = "TURNLOOM-LOOP-LIMIT"


class PlanChanged(BoardError):
    """A run is pinned to another plan of its board than the one there is now."""

    code = "TURNLOOM-PLAN-CHANGED"


class FlowError(TurnloomError):
    """A flow could not do what it is for."""

    code = "TURNLOOM-FLOW"


class InvalidUpdate(FlowError, ValueError):
    """A state, or what a step gives, that the flow's state cannot be."""

    code = "TURNLOOM-UPDATE"


class MissingContext(TurnloomError):
    """A run cannot start or go on: values that it needs are missing."""

    code = "TURNLOOM-CONTEXT"

    def __init__(self, problems: Iterable[str], what: str = "The run was not started") -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{what}:\n{lines}")


class ContextUnavailable(TurnloomError):
    """No provider gave context for a turn; `failures` are the facts of those that were asked."""

    code = "TURNLOOM-PROVIDER"

    def __init__(self, message: str, failures: Iterable[object] = ()) -> None:
        self.failures = tuple(failures)
        super().__init__(message)


class ContextTooLarge(TurnloomError):
    """There is no room for what a turn is shown: in its budget, or in the window of its model."""

    code = "TURNLOOM-CONTEXT-SIZE"


class DocumentsUnavailable(TurnloomError):
    """A document store does not answer, in time or at all."""

    code = "TURNLOOM-DOCUMENTS"


class CollectionUnavailable(TurnloomError):
    """A collection cannot be searched or filled now."""

    code = "TURNLOOM-COLLECTION"


class NoCandidates(TurnloomError):
    """A selection has nobody left who can be chosen."""

    code = "TURNLOOM-NO-CANDIDATES"


class RunBusy(TurnloomError):
    """Another process drives the run."""

    code = "TURNLOOM-BUSY"


class WriteRefused(TurnloomError):
    """A variable cannot be written, or not with this value."""

    code = "TURNLOOM-WRITE"


class QuestionExpired(TurnloomError, TimeoutError):
    """Nobody answered a question in time."""

    code = "TURNLOOM-EXPIRED"


class ToolServerError(TurnloomError):
    """A server of tools cannot be reached, or a tool of it failed."""

    code = "TURNLOOM-TOOL-SERVER"


class BudgetExceeded(TurnloomError):
    """A run has no budget for what it is to do."""

    code = "TURNLOOM-BUDGET"


class LoopDetected(TurnloomError):
    """A run went round in circles, and was stopped."""

    code = "TURNLOOM-LOOP"


class EngineError(TurnloomError):
    """An engine could not answer."""

    code = "TURNLOOM-ENGINE"
