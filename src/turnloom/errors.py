"""Every error that Turnloom raises, in one tree, and the diagnostics of its checks.

TurnloomError                 base of all errors; has a stable `code`
├── DefinitionError       a workflow fails its check; carries all diagnostics
├── UsageError            an invalid call: wrong argument, closed app, bad setting
│   ├── UnknownRun        the store has no run with this id
│   ├── UnknownWorkflow   the app serves no workflow with this name
│   ├── UnknownCollection the app has no collection with this name
│   ├── WorkflowGone      the workflow folder of a run no longer exists
│   ├── UnknownFlow       a run belongs to a flow that this program does not define
│   ├── InboxFull         as many messages wait for a run as may
│   ├── TooManyQuestions  a run has as many open questions as it may
│   ├── CodeMissing       a worker lacks the code of a run, and leaves it to others
│   └── NotYours          a question belongs to another user or tenant
├── NotAuthenticated      a credential is missing, unknown, expired, revoked or malformed
├── MessageRejected       a message came in an open turn, and was to be rejected then
├── Forbidden             the role or the scopes of a principal do not allow a call
├── LogError              the log rejected an append, or could not store it
│   ├── Conflict          the log is at another position, or already has this id
│   ├── LeaseLost         the lease of the run expired: another process may drive it
│   ├── UnknownKind       an event has a kind, version or shape unknown to this release
│   │   └── LogDamaged    events of a run are missing in the store
│   └── StoreUnavailable  the store cannot be read or written: full disk, locked, damaged
├── BoardError            an operation on a board failed
│   ├── InvalidArtifact   an artifact, payload or visibility is invalid
│   ├── ArtifactExists    an artifact with this id exists with other content
│   ├── UnknownType       an artifact type name is unknown or ambiguous
│   ├── ReactionFailed    the turn of an agent on a board failed
│   ├── PredicateFailed   a condition or join key raised, or returned an invalid value
│   ├── LoopLimit         one publish caused more turns than allowed
│   └── PlanChanged       a run is pinned to another plan of its board
├── FlowError             an operation on a flow failed
│   ├── InvalidUpdate     a state, or the result of a step, does not fit the flow's state
│   └── FlowFailed        a run of a flow failed or was cancelled (defined with `Outcome`)
├── MissingContext        required values are missing, so a run cannot start or continue
├── ContextUnavailable    every context provider of a turn failed
├── ContextTooLarge       the context of a turn exceeds a budget or a model's window
├── DocumentsUnavailable  a document store failed or timed out
├── CollectionUnavailable a collection cannot be searched or filled
├── NoCandidates          a selection has no eligible candidate left
├── RunBusy               another process drives the run
├── WriteRefused          a variable is read-only, or rejects this value
├── QuestionExpired       a question was not answered in time
├── ToolServerError       a tool server is unreachable, or one of its tools failed
├── BudgetExceeded        a run has exhausted its budget
├── LoopDetected          a run was stopped because it repeated itself
└── EngineError           an engine failed to answer
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


class TurnloomError(Exception):
    """Base class of all errors that Turnloom raises."""

    code: ClassVar[str] = "TURNLOOM"


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """A problem in a declaration: its location, code, message and remedy."""

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
    """A workflow fails its check."""

    code = "TURNLOOM-DEFINITION"

    def __init__(self, name: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        lines = "\n".join(f"  {problem}" for problem in self.diagnostics)
        super().__init__(f"Workflow {name!r} does not pass its check:\n{lines}")


class UsageError(TurnloomError):
    """An invalid call: a wrong argument, a closed app, a bad setting."""

    code = "TURNLOOM-USAGE"


class UnknownRun(UsageError):
    """The store has no run with this id."""

    code = "TURNLOOM-UNKNOWN-RUN"

    def __init__(self, run: str) -> None:
        super().__init__(f"Unknown run {run!r}. List the runs of this store with `turnloom runs`.")


class UnknownWorkflow(UsageError):
    """The app serves no workflow with this name."""

    code = "TURNLOOM-UNKNOWN-WORKFLOW"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown workflow {name!r}. List the workflows that are served here.")


class UnknownCollection(UsageError):
    """The app has no collection with this name."""

    code = "TURNLOOM-UNKNOWN-COLLECTION"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown collection {name!r}. Register it: `app.register_collection(…)`.")


class WorkflowGone(UsageError):
    """The workflow folder of a run no longer exists, and its code is needed."""

    code = "TURNLOOM-WORKFLOW-GONE"


class UnknownFlow(UsageError):
    """A run belongs to a flow that this program does not define."""

    code = "TURNLOOM-UNKNOWN-FLOW"


class InboxFull(UsageError):
    """As many messages wait for a run as may."""

    code = "TURNLOOM-INBOX-FULL"


class TooManyQuestions(UsageError):
    """A run has as many open questions as it may."""

    code = "TURNLOOM-TOO-MANY-QUESTIONS"


class CodeMissing(UsageError):
    """A worker lacks the code of a run, and leaves the run to others. `needs` names the code."""

    code = "TURNLOOM-CODE-MISSING"

    def __init__(self, needs: str, reason: str) -> None:
        self.needs = needs
        super().__init__(reason)


class NotYours(UsageError):
    """A question belongs to another user or tenant."""

    code = "TURNLOOM-NOT-YOURS"


class NotAuthenticated(TurnloomError):
    """A credential is missing, unknown, expired, revoked or malformed: one answer for all."""

    code = "TURNLOOM-NOT-AUTHENTICATED"

    def __init__(self) -> None:
        super().__init__("The credential is missing or not valid. Send `Authorization: Bearer …`.")


class MessageRejected(TurnloomError):
    """A message came while a turn was open, and was to be rejected then."""

    code = "TURNLOOM-REJECTED"

    def __init__(self, run: str) -> None:
        super().__init__(
            f"Run {run!r} is in a turn, so the message was rejected. Send it again later, or with "
            "`if_busy='enqueue'` or `'interrupt'`."
        )


class Forbidden(TurnloomError):
    """The role or the scopes of a principal do not allow a call."""

    code = "TURNLOOM-FORBIDDEN"


class LogError(TurnloomError):
    """The log rejected an append, or could not store it."""

    code = "TURNLOOM-LOG"


class Conflict(LogError):
    """The log is at another position, or already has this id."""

    code = "TURNLOOM-CONFLICT"


class LeaseLost(LogError):
    """The lease of the run expired: another process may have taken it over."""

    code = "TURNLOOM-LEASE-LOST"

    def __init__(self, run: str) -> None:
        super().__init__(
            f"This process no longer drives run {run!r}: its lease expired, so another process may "
            "have taken it over. This process stores nothing more. Check the status with "
            f"`turnloom runs` and continue the run with `turnloom resume {run}`. If this process "
            "was only slow, set a longer `lease`."
        )


class UnknownKind(LogError):
    """An event has a kind, version or shape unknown to this release."""

    code = "TURNLOOM-UNKNOWN-KIND"


class LogDamaged(UnknownKind):
    """Events of a run are missing in the store."""

    code = "TURNLOOM-DAMAGED"

    def __init__(self, run: str, first: int, last: int | None = None) -> None:
        missing = f"event {first}" if first == last else f"events {first} to {last or 'the last'}"
        super().__init__(
            f"Run {run!r} is damaged: the store lacks {missing}. Other runs are not affected. "
            "List all damage with `turnloom store verify`, then restore a backup or abandon "
            "this run."
        )


class StoreUnavailable(LogError):
    """The store cannot be read or written: full disk, locked, damaged."""

    code = "TURNLOOM-STORE"


class BoardError(TurnloomError):
    """An operation on a board failed."""

    code = "TURNLOOM-BOARD"


class InvalidArtifact(BoardError, ValueError):
    """An artifact, payload or visibility is invalid."""

    code = "TURNLOOM-ARTIFACT"


class ArtifactExists(BoardError):
    """An artifact with this id exists with other content."""

    code = "TURNLOOM-ARTIFACT-EXISTS"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"Artifact {id!r} already exists with other content, and artifacts are immutable. "
            "Publish the new content under a new id."
        )


class UnknownType(BoardError):
    """An artifact type name is unknown or ambiguous."""

    code = "TURNLOOM-UNKNOWN-TYPE"


class ReactionFailed(BoardError):
    """The turn of an agent on a board failed; `board.retry` runs it again."""

    code = "TURNLOOM-REACTION"

    def __init__(self, run: str, turn: int, agent: str, error: str) -> None:
        self.run = run
        self.turn = turn
        self.agent = agent
        super().__init__(f"Agent {agent!r} failed in turn {turn} of run {run!r}: {error}")


class PredicateFailed(BoardError):
    """A condition or join key of a subscription raised, or returned an invalid value."""

    code = "TURNLOOM-PREDICATE"

    def __init__(self, run: str, subscription: str, artifact: str, error: str) -> None:
        self.run = run
        self.subscription = subscription
        self.artifact = artifact
        super().__init__(
            f"Subscription {subscription!r} failed to evaluate artifact {artifact!r} of run "
            f"{run!r}: {error}. Fix its condition or key, then publish again."
        )


class LoopLimit(BoardError):
    """One publish caused more turns than allowed; the message names the undelivered artifacts."""

    code = "TURNLOOM-LOOP-LIMIT"


class PlanChanged(BoardError):
    """A run is pinned to another plan of its board than the current one."""

    code = "TURNLOOM-PLAN-CHANGED"


class FlowError(TurnloomError):
    """An operation on a flow failed."""

    code = "TURNLOOM-FLOW"


class InvalidUpdate(FlowError, ValueError):
    """A state, or the result of a step, does not fit the flow's state."""

    code = "TURNLOOM-UPDATE"


class MissingContext(TurnloomError):
    """Required values are missing, so a run cannot start or continue."""

    code = "TURNLOOM-CONTEXT"

    def __init__(self, problems: Iterable[str], what: str = "The run was not started") -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{what}:\n{lines}")


class ContextUnavailable(TurnloomError):
    """Every context provider of a turn failed; `failures` has a fact for each."""

    code = "TURNLOOM-PROVIDER"

    def __init__(self, message: str, failures: Iterable[object] = ()) -> None:
        self.failures = tuple(failures)
        super().__init__(message)


class ContextTooLarge(TurnloomError):
    """The context of a turn exceeds its budget or the window of its model."""

    code = "TURNLOOM-CONTEXT-SIZE"


class DocumentsUnavailable(TurnloomError):
    """A document store failed or timed out."""

    code = "TURNLOOM-DOCUMENTS"


class CollectionUnavailable(TurnloomError):
    """A collection cannot be searched or filled."""

    code = "TURNLOOM-COLLECTION"


class NoCandidates(TurnloomError):
    """A selection has no eligible candidate left."""

    code = "TURNLOOM-NO-CANDIDATES"


class RunBusy(TurnloomError):
    """Another process drives the run."""

    code = "TURNLOOM-BUSY"


class WriteRefused(TurnloomError):
    """A variable is read-only, or rejects this value."""

    code = "TURNLOOM-WRITE"


class QuestionExpired(TurnloomError, TimeoutError):
    """A question was not answered in time."""

    code = "TURNLOOM-EXPIRED"


class ToolServerError(TurnloomError):
    """A tool server is unreachable, or one of its tools failed."""

    code = "TURNLOOM-TOOL-SERVER"


class BudgetExceeded(TurnloomError):
    """A run has exhausted its budget."""

    code = "TURNLOOM-BUDGET"


class LoopDetected(TurnloomError):
    """A run was stopped because it repeated itself."""

    code = "TURNLOOM-LOOP"


class EngineError(TurnloomError):
    """An engine failed to answer."""

    code = "TURNLOOM-ENGINE"
