"""Messages to runs from outside, and workflows as the runtime holds them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, get_args

import msgspec

from turnloom.agents.spec import Callee, Component, Engine, Question, RunState, ToolServer
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.means import Embedder, ReaderSearch, TokenCounter, no_search
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import Artifact, Reader, TypeRegistry
from turnloom.errors import Diagnostic, InboxFull, UsageError
from turnloom.guards.spec import NO_GUARDS, Guards
from turnloom.kernel.arguments import as_string
from turnloom.kernel.values import Json
from turnloom.log.spec import Event, Fact, progress_words
from turnloom.runs.actions import Action, Work
from turnloom.runs.form import Form
from turnloom.variables.events import ContextSuppressed


class Reply(msgspec.Struct, frozen=True, tag="answer", omit_defaults=True):
    """An answer to a question of the run, by a person with a role, if it is known."""

    question: str
    value: Json
    by: str
    role: str = ""


# What becomes of a message that comes while a turn is open.
IfBusy = Literal["enqueue", "reject", "interrupt"]
INTERRUPT: IfBusy = "interrupt"


def as_if_busy(given: object) -> IfBusy:
    """What becomes of a message in an open turn, as a program gives it.

    Raises:
        UsageError: it is no such word.
    """
    word = as_string(given, "`if_busy`")
    if word not in get_args(IfBusy):
        raise UsageError(f"`if_busy` is {word!r}. Give one of {', '.join(get_args(IfBusy))}.")
    return cast("IfBusy", word)


class Say(msgspec.Struct, frozen=True, tag="say", omit_defaults=True):
    """A message of the run's user, which comes by itself."""

    text: str
    by: str
    if_busy: IfBusy = "enqueue"


class SentMessage(NamedTuple):
    """A message as its run recorded it: the run that has it, and the verdict, as in
    `MessageSent`. `repeated`: it was recorded before."""

    id: str
    run: str
    verdict: str
    repeated: bool = False


class Stop(msgspec.Struct, frozen=True, tag="cancel"):
    """A request to cancel the run."""

    by: str
    reason: str = ""


class ObservedRun(NamedTuple):
    """The run of an event, for observers."""

    id: str
    tenant: str
    user: str
    workflow: str
    form: str


class Holder(NamedTuple):
    """A process that drives a run: the seconds its lease lasts, and the seconds since it was
    renewed. Both are None where claims last as long as their process."""

    process: str
    seconds: float | None = None
    silent: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether the process does not respond: half of its lease is over without a renewal."""
        return self.seconds is not None and (self.silent or 0) > self.seconds

    def __str__(self) -> str:
        """The process, and when the run can be taken over if it does not respond."""
        if not self.is_late:
            return f"process {self.process}"
        return (
            f"process {self.process}, which has not responded for {self.silent:.0f} s and loses "
            f"the run in {self.seconds:.0f} s"
        )


class Delivery(StrEnum):
    """The result of sending a message to a run."""

    TAKEN = "taken in by the driver of the run"
    RECORDED = "recorded; no process drives the run"
    KEPT = "kept until a program continues the run that declares its board or flow"
    REPEATED = "the question has its answer already; the first one counts"


class WaitingQuestion(msgspec.Struct, frozen=True):
    """An open question, with the run that waits for its answer, its workflow and its user."""

    run: str
    workflow: str
    user: str
    question: Question


def continuation_of(run: str) -> str:
    """The id of the run that continues a conversation: `x.2` for `x`, `x.3` for `x.2`."""
    root, dot, number = run.rpartition(".")
    return f"{root}.{int(number) + 1}" if dot and _is_number(number) else f"{run}.2"


def continued_by(run: str) -> str:
    """The id of the run that a run of this id continues, if it continues one."""
    root, dot, number = run.rpartition(".")
    if not dot or not _is_number(number):
        return ""
    return root if number == "2" else f"{root}.{int(number) - 1}"


def _is_number(text: str) -> bool:
    """Whether a text counts the runs of a conversation, from 2 on."""
    return text.isascii() and text.isdigit() and text[0] != "0" and text != "1"


class StoredPlan(msgspec.Struct, frozen=True):
    """The plan of a board or a flow that runs are pinned to: its name, its text, and how its agents
    get their context."""

    name: str
    text: str
    context: str = ""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """A piece of an answer in progress, which is not logged; offset 0 starts the text again.

    `call` is the number of the model call in its turn, and `attempt` the try of that call, from 1.
    """

    run: str
    turn: int
    agent: str
    offset: int
    text: str
    call: int = 1
    attempt: int = 1


class Publish(msgspec.Struct, frozen=True, tag="publish"):
    """An artifact from outside, for all subscriptions."""

    artifact: Artifact


class Deliver(msgspec.Struct, frozen=True, tag="deliver"):
    """An artifact of another run, for the subscription that the run collects for. `depth` counts
    the turns that led to it since `root` was published."""

    artifact: Artifact
    depth: int = 0
    root: str = ""


class Close(msgspec.Struct, frozen=True, tag="close"):
    """A request to close batches."""

    subscription: str


class RetryTurn(msgspec.Struct, frozen=True, tag="retry"):
    """A request to retry a failed turn."""

    turn: int
    by: str


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """How to retry an ended run: by default from what failed; or everything `since` a turn (its
    number) or a step (its name), or after the batch `at` a position. `loaded` replaces its
    definition, and `budget` raises limits. `tools` says what becomes of calls that are made
    again."""

    by: str
    since: int | str | None = None
    at: int | None = None
    loaded: "LoadedWorkflow | None" = None
    budget: Mapping[str, float] = field(default_factory=dict[str, float])
    tools: str = "live"


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """How to fork a run: after the batch `at` a position, by a person (by default, its user), with
    an answer to its open question, variables, and a changed definition. `tools` says what becomes
    of calls that touch the world."""

    at: int
    by: str | None = None
    answer: Json = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    tools: str = "ask"
    loaded: "LoadedWorkflow | None" = None

    @property
    def changes_nothing(self) -> bool:
        """Whether the fork begins as the original was at the cut."""
        return self.answer is None and not self.values and self.loaded is None


class Limit(NamedTuple):
    """A limit of all runs together: at most so many at once, and so many per minute; 0: any
    number."""

    name: str
    at_once: int = 0
    per_minute: int = 0

    def __str__(self) -> str:
        """What it allows."""
        parts = (
            (self.at_once and f"{self.at_once} at once"),
            (self.per_minute and f"{self.per_minute} per minute"),
        )
        return " and ".join(part for part in parts if part)


def tenant_limit(most: int) -> str:
    """What the limit of a tenant allows."""
    return f"{most} runs of its tenant at once"


class LimitWait(NamedTuple):
    """The wait of a run for the limit of its tenant: what that allows, and for how long."""

    reason: str
    seconds: float


class Renewal(NamedTuple):
    """A workflow whose plan has changed: as it was, to fold logs and not to act, and as it is;
    `changed` names what differs."""

    before: "LoadedWorkflow"
    present: "LoadedWorkflow"
    changed: tuple[str, ...]


class Wake(msgspec.Struct, frozen=True, tag="wake"):
    """A request to continue a run that its driver gave back unfinished."""


# The tool that asks whether a fork may act, and the answers that it takes.
EFFECT = "effect"
ALLOW, REFUSE, REPLACE = "allow", "refuse", "replace"


# The messages that an inbox holds.
Message = Reply | Say | Stop | Publish | Deliver | Close | RetryTurn | Wake


# The most messages that wait for one run.
MOST_MAIL = 10_000


def refuse_flood(run: str, waiting: int) -> None:
    """Refuse a message to a run that has too many waiting.

    Raises:
        InboxFull: there are too many.
    """
    if waiting >= MOST_MAIL:
        raise InboxFull(
            f"{waiting:,} messages wait for run {run!r}, which is as many as may. Resume the run, "
            "so that it takes them in, or cancel it."
        )


class FormRuntime(Protocol):
    """The half of a form that makes briefs and calls user code, for one run."""

    async def act(self, action: Action) -> Action | None:
        """Carry out an action that only this form decides on; what follows at once, if anything.

        Raises:
            Waiting: a person was asked.
        """
        ...

    async def run(self, work: Work) -> None:
        """Take a turn or a step to its end, and record it.

        Raises:
            Waiting: a person was asked.
        """
        ...

    async def cut_off(self, work: Work) -> None:
        """Record that work was interrupted."""
        ...

    async def fail(self, work: Work, error: str) -> None:
        """Record that work ended itself."""
        ...


@dataclass(frozen=True, slots=True)
class AgentRuntime:
    """The code behind an agent. `engines` are asked in order; `context` is for all of them,
    `contexts` for each; `samples` tries of a turn are made, and the one with the best `score`
    counts. `most` turns are taken at the same time in all runs of the process. The agent reads as
    `reader`, or else under its name and `labels` in the run's tenant. `named` are engines of which
    one is chosen for a turn."""

    engines: tuple[Engine, ...]
    context: ChosenProvider | Assembly | None = None
    contexts: tuple[ChosenProvider | None, ...] = ()
    components: tuple[Component, ...] = ()
    samples: int = 1
    score: Callable[..., Any] | None = None
    most: int | None = None
    reader: Reader | None = None
    labels: Set[str] = frozenset()
    named: Mapping[str, Engine] = field(default_factory=dict[str, Engine])


# Returns the connection of a tenant to a tool server.
TenantServer: TypeAlias = Callable[[str], ToolServer]


@dataclass(frozen=True, slots=True)
class LoadedWorkflow:
    """A checked workflow with the code of its agents, tools and hooks, and the pinned definition.

    `runtime` creates the acting half of its form. Tools are keyed by name, hooks by position,
    `data` (contents of files) by variable; parts that failed their check are set aside and count as
    empty. `lacking` names agents that cannot answer here: such a run takes messages, but is not
    driven. `unheeded` names settings of the program without effect here. `warnings` come from the
    check of the program's declarations. `migrate` gives the facts to record before a run with an
    earlier state continues. `modules` keeps the loaded code alive.
    """

    workflow: Form
    staff: Mapping[str, AgentRuntime]
    root: str
    definition: str
    files: Mapping[str, str]
    code: Mapping[str, str]
    opening: str = ""
    database: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Any])
    tools: Mapping[str, Callee] = field(default_factory=dict[str, Callee])
    hooks: Mapping[int, Callee] = field(default_factory=dict[int, Callee])
    message_hooks: Mapping[int, Callable[..., Awaitable[Any]]] = field(
        default_factory=dict[int, Callable[..., Awaitable[Any]]]
    )
    servers: Mapping[str, TenantServer] = field(default_factory=dict[str, TenantServer])
    selector: Engine | None = None
    model: str | None = None
    user_script: tuple[Json, ...] = ()
    changed_code: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    suppressed: tuple[ContextSuppressed, ...] = ()
    contexts: Mapping[str, ChosenProvider] = field(default_factory=dict[str, ChosenProvider])
    types: TypeRegistry = field(default_factory=TypeRegistry)
    search: ReaderSearch = no_search
    counter: TokenCounter = field(default_factory=Estimate)
    runtime: Callable[[Any], FormRuntime] | None = None
    guards: Guards = NO_GUARDS
    embedder: Embedder | None = None
    modules: object = None
    lacking: tuple[Diagnostic, ...] = ()
    unheeded: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    migrate: Callable[[RunState], Awaitable[Sequence[tuple[str, Fact]]]] | None = None


@dataclass(frozen=True, slots=True)
class VerifiedRun:
    """The result of checking a run: how many events it has, and what is wrong with them."""

    run: str
    events: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that ended: how, and when."""

    run: str
    status: str
    ended: datetime


@dataclass(frozen=True, slots=True)
class PrunedRun:
    """A run that was removed: how and when it ended, and its size."""

    run: str
    status: str
    ended: datetime
    events: int
    artifacts: int


@dataclass(frozen=True, slots=True)
class Removal:
    """The record of a removal: when and by whom it was asked for, what it was to remove, and how
    much it did. `others` counts what is no run, by the port that kept it."""

    at: datetime
    by: str
    what: str
    runs: int = 0
    events: int = 0
    artifacts: int = 0
    others: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, order=True)
class Migration:
    """A step of a store's schema: the version that it leads to, and its name."""

    version: int
    name: str


@dataclass(frozen=True, slots=True)
class RunCopy:
    """The events that a run recorded, by the batches in which they were appended. A branch has an
    `origin`: the run that recorded the last event before them."""

    batches: tuple[tuple[Event, ...], ...]
    origin: str = ""

    @property
    def after(self) -> int:
        """The position before the first event."""
        return self.batches[0][0].seq - 1

    @property
    def position(self) -> int:
        """The position of the last event."""
        return self.batches[-1][-1].seq


# The status of a run that no worker has the code of.
STRANDED = "stranded"

# The status of a run that is not driven because of a limit of all runs together.
LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line: its workflow, its start, its status. A run that cannot be read is
    `broken`, one whose code no worker has is `stranded`, and one that waits for a limit of all runs
    together is `limited`, for a `reason`, as one that failed or was cancelled; one that is
    `collecting` says how much it has of what is wanted. It `continues` a conversation that had
    ended, if one is named."""

    run: str
    workflow: str
    status: str
    tenant: str
    user: str
    started: datetime
    latest: datetime
    events: int
    reason: str = ""
    collected: int | None = None
    wanted: int | None = None
    continues: str = ""

    @property
    def standing(self) -> str:
        """Its status, as in `collecting 1 of 2`."""
        return progress_words(self.status, self.collected, self.wanted)
