"""Every error Weft raises, in one tree, and the diagnostics that checks give.

WeftError                 anything Weft says no to; has a stable `code`
├── DefinitionError       a workflow that does not pass its check; carries all diagnostics
├── UsageError            a call that cannot mean anything: wrong answer, closed app, bad setting
│   ├── UnknownRun        no run of that id
│   ├── WorkflowGone      the folder of a run's workflow is not there any more
│   └── NotYours          a question of another user or tenant
├── LogError              the log refused or could not store
│   ├── Conflict          the log is at another position, or holds that id already
│   ├── UnknownKind       an event of a kind, version or shape that this release does not know
│   └── StoreUnavailable  the store cannot be written or read now: full disk, locked, damaged
├── BoardError            the board says no
│   ├── InvalidArtifact   an artifact, a payload or a visibility that cannot be
│   ├── ArtifactExists    an artifact of this id is there, with other content
│   ├── UnknownType       no type of artifacts has that name, or several have it
│   ├── ReactionFailed    an agent could not do what artifacts woke it for
│   ├── LoopLimit         one publish set off as many turns as one may
│   └── PlanChanged       a run is pinned to another plan of its board
├── FlowError             a flow could not do what it is for
│   ├── InvalidUpdate     a state, or what a step gives, that the flow's state cannot be
│   └── FlowFailed        a run of a flow failed, or was cancelled
├── MissingContext        a run cannot start or go on: values that it needs are missing
├── ContextUnavailable    no provider gave context for a turn
├── ContextTooLarge       there is no room for what a turn must be shown at least
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
from typing import Any, ClassVar


class WeftError(Exception):
    """Anything Weft says no to."""

    code: ClassVar[str] = "WEFT"


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


class DefinitionError(WeftError):
    """A workflow that does not pass its check."""

    code = "WEFT-DEFINITION"

    def __init__(self, name: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        lines = "\n".join(f"  {problem}" for problem in self.diagnostics)
        super().__init__(f"Workflow {name!r} does not pass its check:\n{lines}")


class UsageError(WeftError):
    """A call that cannot mean anything."""

    code = "WEFT-USAGE"


class UnknownRun(UsageError):
    """No run of that id."""

    code = "WEFT-UNKNOWN-RUN"

    def __init__(self, run: str) -> None:
        super().__init__(f"There is no run {run!r} in this store. `weft runs` lists what there is.")


class WorkflowGone(UsageError):
    """The folder of a run's workflow is not there any more, and its code is needed."""

    code = "WEFT-WORKFLOW-GONE"


class NotYours(UsageError):
    """A question that belongs to another user or tenant."""

    code = "WEFT-NOT-YOURS"


class LogError(WeftError):
    """The log refused or could not store."""

    code = "WEFT-LOG"


class Conflict(LogError):
    """The log is at another position, or holds that id already."""

    code = "WEFT-CONFLICT"


class UnknownKind(LogError):
    """An event of a kind, version or shape that this release does not know."""

    code = "WEFT-UNKNOWN-KIND"


class StoreUnavailable(LogError):
    """The store cannot be written or read right now."""

    code = "WEFT-STORE"


class BoardError(WeftError):
    """The board says no."""

    code = "WEFT-BOARD"


class InvalidArtifact(BoardError, ValueError):
    """An artifact, a payload or a visibility that cannot be."""

    code = "WEFT-ARTIFACT"


class ArtifactExists(BoardError):
    """An artifact of this id is there, with other content."""

    code = "WEFT-ARTIFACT-EXISTS"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"Artifact {id!r} is on the board with other content, and artifacts never change. "
            "Publish the other content under an id of its own."
        )


class UnknownType(BoardError):
    """No type of artifacts has that name, or several have it."""

    code = "WEFT-UNKNOWN-TYPE"


class ReactionFailed(BoardError):
    """An agent could not do what artifacts woke it for; `board.retry` lets it try again."""

    code = "WEFT-REACTION"

    def __init__(self, run: str, turn: int, agent: str, error: str) -> None:
        self.run = run
        self.turn = turn
        self.agent = agent
        super().__init__(f"Agent {agent!r} failed in turn {turn} of run {run!r}: {error}")


class LoopLimit(BoardError):
    """One publish set off as many turns as one may; what was not delivered is named."""

    code = "WEFT-LOOP-LIMIT"


class PlanChanged(BoardError):
    """A run is pinned to another plan of its board than the one there is now."""

    code = "WEFT-PLAN-CHANGED"


class FlowError(WeftError):
    """A flow could not do what it is for."""

    code = "WEFT-FLOW"


class InvalidUpdate(FlowError, ValueError):
    """A state, or what a step gives, that the flow's state cannot be."""

    code = "WEFT-UPDATE"


class FlowFailed(FlowError):
    """A run of a flow failed, or was cancelled; `outcome` is what became of it."""

    code = "WEFT-FLOW-FAILED"

    def __init__(self, message: str, outcome: Any) -> None:
        super().__init__(message)
        self.outcome = outcome


class MissingContext(WeftError):
    """A run cannot start or go on: values that it needs are missing."""

    code = "WEFT-CONTEXT"

    def __init__(self, problems: Iterable[str], what: str = "The run was not started") -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{what}:\n{lines}")


class ContextUnavailable(WeftError):
    """No provider gave context for a turn; `failures` are the facts of those that were asked."""

    code = "WEFT-PROVIDER"

    def __init__(self, message: str, failures: Iterable[Any] = ()) -> None:
        self.failures = tuple(failures)
        super().__init__(message)


class ContextTooLarge(WeftError):
    """There is no room for what a turn must be shown at least."""

    code = "WEFT-CONTEXT-SIZE"


class DocumentsUnavailable(WeftError):
    """A document store does not answer, in time or at all."""

    code = "WEFT-DOCUMENTS"


class CollectionUnavailable(WeftError):
    """A collection cannot be searched or filled now."""

    code = "WEFT-COLLECTION"


class NoCandidates(WeftError):
    """A selection has nobody left who can be chosen."""

    code = "WEFT-NO-CANDIDATES"


class RunBusy(WeftError):
    """Another process drives the run."""

    code = "WEFT-BUSY"


class WriteRefused(WeftError):
    """A variable cannot be written, or not with this value."""

    code = "WEFT-WRITE"


class QuestionExpired(WeftError, TimeoutError):
    """Nobody answered a question in time."""

    code = "WEFT-EXPIRED"


class ToolServerError(WeftError):
    """A server of tools cannot be reached, or a tool of it failed."""

    code = "WEFT-TOOL-SERVER"


class BudgetExceeded(WeftError):
    """A run has no budget for what it is to do."""

    code = "WEFT-BUDGET"


class LoopDetected(WeftError):
    """A run went round in circles, and was stopped."""

    code = "WEFT-LOOP"


class EngineError(WeftError):
    """An engine could not answer."""

    code = "WEFT-ENGINE"
