"""The nodes of a flow, as its builder leaves them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.flow.spec.steps import Cache, Retry
from turnloom.guards.spec import Selection

# Seconds that a compensation may take where nothing else is said.
COMPENSATION = 300.0


class Site(NamedTuple):
    """The line of a program that made a call."""

    file: str
    line: int


@dataclass(slots=True)
class NodeSequence:
    """Nodes one after the other; `end` is after how many of them the flow is over, if it is then,
    and `handler` what a failure in them leads to, for a path of a fork. `again` are calls that said
    what was said before, and `flow` is the name of a flow that was given as a path. What
    `is_built` belongs to the plan of a flow."""

    nodes: list["Node"] = field(default_factory=list["Node"])
    site: Site = Site("", 0)
    end: int | None = None
    handler: "NodeSequence | None" = None
    again: list[tuple[str, Site]] = field(default_factory=list[tuple[str, Site]])
    flow: str | None = None
    is_built: bool = False

    @property
    def ends(self) -> bool:
        """Whether the flow is over after the path."""
        return self.end is not None


class Unmade(NamedTuple):
    """A class of which no step could be made, and why."""

    kind: type
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNode:
    """A step, and how it is to be taken. Its settings are as they were given: the check says what
    is wrong with them, and which are `unknown`."""

    name: str
    step: Any
    site: Site
    context: Sequence[Any] = ()
    budget: Budget | None = None
    format: ContextFormat = PLAIN
    retry: Retry = Retry(0, delay=0.0)
    timeout: float | None = None
    require_confidence: float | None = None
    on_low_confidence: NodeSequence | None = None
    validate: tuple[Callable[..., Any], str] | None = None
    compensate: Any = None
    compensate_timeout: float | None = None
    on_failure: tuple[tuple[type[BaseException], NodeSequence], ...] = ()
    recover: bool = False
    cache: Cache | None = None
    select: Selection | None = None
    unknown: tuple[str, ...] = ()
    takes_context: bool = True
    undo_takes_context: bool = True

    @property
    def undo_seconds(self) -> float:
        """The seconds that what makes up for the step may take."""
        return self.compensate_timeout or self.timeout or COMPENSATION


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchNode:
    """Paths of which the one is walked whose value the state has."""

    name: str
    site: Site
    on: Callable[..., Any]
    cases: tuple[tuple[Any, NodeSequence], ...]
    otherwise: NodeSequence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkNode:
    """Paths that are walked at once, each from the same state, and the step after the last."""

    name: str
    site: Site
    paths: tuple[NodeSequence, ...]
    join: StepNode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNode:
    """A path that is walked until a condition holds, at most so often."""

    name: str
    site: Site
    until: Callable[..., Any]
    body: NodeSequence
    max_iterations: int


@dataclass(frozen=True, slots=True)
class Option:
    """What an approver may choose; one that `rejects` leads where a rejection does."""

    id: str
    label: str = ""
    description: str = ""
    rejects: bool = False


APPROVE, REJECT = Option("approve", "Approve"), Option("reject", "Reject", rejects=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """Whom an approval asks, what they are told, what they may choose and until when; without an
    answer, `then` is walked, or else the next is asked. Without a context (`None`) or options, the
    next is asked as the one before."""

    approver: str
    context: str | Callable[..., Any] | None = ""
    options: tuple[Option, ...] = (APPROVE, REJECT)
    timeout: float | None = None
    then: "NodeSequence | ApprovalRequest | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNode:
    """A decision of a person that the run waits for."""

    name: str
    site: Site
    asking: ApprovalRequest
    on_rejection: NodeSequence | None = None


Node = StepNode | BranchNode | ForkNode | LoopNode | ApprovalNode


@dataclass(frozen=True, slots=True)
class Placed:
    """A path of a flow: its nodes, what part it plays, and the path and node that it belongs to."""

    line: NodeSequence
    part: str
    owner: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    """A flow as runs of it are pinned to: its paths by id, its text and the digest of that.
    `migrate` makes a state of one that an earlier model wrote."""

    name: str
    version: str
    state: Any
    paths: Mapping[str, Placed]
    timeout: float | None
    text: str
    digest: str
    migrate: Callable[[dict[str, Any]], Any] | None = None

    def node(self, path: str, at: int) -> Node:
        """The node at a place of a path."""
        return self.paths[path].line.nodes[at]


class Misplaced(NamedTuple):
    """A call that came after another that is to be the last, or before `start_with` if `after` is
    empty."""

    call: str
    site: Site
    after: str


class DeclaredFlow(NamedTuple):
    """A flow as it was built, and the calls that came before or after their time."""

    name: str
    state: Any
    main: NodeSequence
    failure: NodeSequence | None
    misplaced: Sequence[Misplaced]
    timeout: float | None
    is_ended: bool
    variables: Mapping[str, Any]
    migrate: Any
