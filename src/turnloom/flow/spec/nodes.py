"""The nodes and the plan of a flow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.flow.spec.steps import Cache, Retry
from turnloom.guards.spec import Selection

# The default timeout of a compensation, in seconds.
COMPENSATION = 300.0


class Site(NamedTuple):
    """The file and line of a builder call."""

    file: str
    line: int


@dataclass(slots=True)
class NodeSequence:
    """The nodes of a path; `end` is the number of nodes after which the flow ends, if it does, and
    `handler` the path for failures, for a path of a fork. `again` are repeated calls, and `flow` is
    the name of a flow that was used as a path. With `is_built`, it belongs to the plan of a
    flow."""

    nodes: list["Node"] = field(default_factory=list["Node"])
    site: Site = Site("", 0)
    end: int | None = None
    handler: "NodeSequence | None" = None
    again: list[tuple[str, Site]] = field(default_factory=list[tuple[str, Site]])
    flow: str | None = None
    is_built: bool = False

    @property
    def ends(self) -> bool:
        """Whether the flow ends after the path."""
        return self.end is not None


class Unmade(NamedTuple):
    """A class that could not be instantiated as a step, and why."""

    kind: type
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNode:
    """A step with its settings. The settings are kept as given: the check reports invalid and
    `unknown` ones."""

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
        """The timeout of the step's compensation, in seconds."""
        return self.compensate_timeout or self.timeout or COMPENSATION


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchNode:
    """Paths by the value of a function of the state."""

    name: str
    site: Site
    on: Callable[..., Any]
    cases: tuple[tuple[Any, NodeSequence], ...]
    otherwise: NodeSequence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkNode:
    """Paths that run at once, each from the same state, and the step that joins them."""

    name: str
    site: Site
    paths: tuple[NodeSequence, ...]
    join: StepNode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNode:
    """A path that repeats until a condition holds, up to `max_iterations` times."""

    name: str
    site: Site
    until: Callable[..., Any]
    body: NodeSequence
    max_iterations: int


@dataclass(frozen=True, slots=True)
class Option:
    """A choice of an approver; one that `rejects` is a rejection."""

    id: str
    label: str = ""
    description: str = ""
    rejects: bool = False


APPROVE, REJECT = Option("approve", "Approve"), Option("reject", "Reject", rejects=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A request for approval: the approver, the context, the options and the timeout. An approver
    is a person or a role, as in `role:admin`; of several, the first to answer decides. Without an
    answer, the path `then` is taken, or the request `then` is made. Without a context (`None`) or
    options, that request has those of the one before."""

    approver: str | tuple[str, ...]
    context: str | Callable[..., Any] | None = ""
    options: tuple[Option, ...] = (APPROVE, REJECT)
    timeout: float | None = None
    then: "NodeSequence | ApprovalRequest | None" = None

    @property
    def asked(self) -> str:
        """The approvers, in words."""
        return self.approver if isinstance(self.approver, str) else " or ".join(self.approver)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNode:
    """A decision of a person that the run waits for."""

    name: str
    site: Site
    asking: ApprovalRequest
    on_rejection: NodeSequence | None = None


Node = StepNode | BranchNode | ForkNode | LoopNode | ApprovalNode


@dataclass(frozen=True, slots=True)
class PlacedPath:
    """A path of a flow: its nodes, its part, and the path and node that it belongs to."""

    line: NodeSequence
    part: str
    owner: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    """The definition of a flow that its runs are pinned to: paths by id, text and digest. `migrate`
    converts a state of an earlier model."""

    name: str
    version: str
    state: Any
    paths: Mapping[str, PlacedPath]
    timeout: float | None
    text: str
    digest: str
    migrate: Callable[[dict[str, Any]], Any] | None = None

    def node(self, path: str, at: int) -> Node:
        """The node at an index of a path."""
        return self.paths[path].line.nodes[at]


class MisplacedCall(NamedTuple):
    """A builder call out of order: after the call `after`, or before `start_with` if that is
    empty."""

    call: str
    site: Site
    after: str


class DeclaredFlow(NamedTuple):
    """A flow as declared, and its builder calls out of order."""

    name: str
    state: Any
    main: NodeSequence
    failure: NodeSequence | None
    misplaced: Sequence[MisplacedCall]
    timeout: float | None
    is_ended: bool
    variables: Mapping[str, Any]
    migrate: Any
