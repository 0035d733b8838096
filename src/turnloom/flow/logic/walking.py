"""Movement of strands through the paths of a flow: entering, advancing, forking, failing."""

from collections.abc import Sequence

from turnloom.errors import InvalidUpdate
from turnloom.flow.logic.states import REPLACED, StateModel
from turnloom.flow.spec.nodes import (
    ApprovalNode,
    BranchNode,
    FlowPlan,
    ForkNode,
    LoopNode,
    Node,
    StepNode,
)
from turnloom.flow.spec.progress import CompletedStep, Frame, Progress, StepFailure, Strand

# The ids of the main path, and of the path for failures of the whole flow.
MAIN, FAILURE = "main", "failure"


def first_progress() -> Progress:
    """The progress at the start of the main path."""
    return Progress({"": Strand("", frames=[Frame(MAIN)])}, {"": None})


def node_of(plan: FlowPlan, strand: Strand) -> Node | None:
    """The node that a strand is at; None at the end of a path."""
    frame = strand.frames[-1]
    nodes = plan.paths[frame.path].line.nodes
    return nodes[frame.at] if frame.at < len(nodes) else None


def place_of(plan: FlowPlan, strand: Strand) -> str:
    """The place of a strand: the names of the enclosing nodes, and of its node."""
    frame = strand.frames[-1]
    node = node_of(plan, strand)
    return f"{frame.prefix}{node.name}" if node else frame.prefix.rstrip("/")


def part_of(plan: FlowPlan, strand: Strand) -> str:
    """The part of the innermost path of a strand."""
    return plan.paths[strand.frames[-1].path].part


def enter(
    plan: FlowPlan, progress: Progress, strand: Strand, path: str, prefix: str, number: int = 0
) -> None:
    """Enter a path at its start."""
    strand.frames.append(Frame(path, 0, prefix, number))
    strand.step = strand.attempt = 0
    strand.status = "ready"
    settle(plan, progress, strand)


def advance(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Move a strand past its node."""
    strand.frames[-1].at += 1
    strand.step = strand.attempt = 0
    strand.status = "ready"
    settle(plan, progress, strand)


def settle(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Leave paths that a strand has finished, as far as nothing has to be decided, and enter the
    loop that it is at."""
    while strand.frames:
        frame, node = strand.frames[-1], node_of(plan, strand)
        if isinstance(node, LoopNode):
            enter(
                plan,
                progress,
                strand,
                f"{frame.path}/{frame.at}.body",
                prefix=f"{place_of(plan, strand)}[1]/",
                number=1,
            )
        if node is not None:
            if not isinstance(node, ForkNode):  # a fork opens its paths first
                reopen(plan, progress, strand)
            return
        placed = plan.paths[frame.path]
        if placed.part == "handler":
            return  # whether the flow recovers is recorded first
        if placed.line.ends or placed.part in ("main", "failure", "path", "rescue"):
            end(progress, strand)
        elif placed.part == "body":
            return  # whether the loop repeats is decided first
        else:
            strand.frames.pop()
            strand.frames[-1].at += 1


def reopen(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Continue what was open at the node of a strand before the flow was rewound."""
    left = progress.left.pop(place_of(plan, strand), None) if progress.left else None
    if left is None:
        return
    strand.status, strand.asking = left.status, left.asking
    if left.step is not None:
        strand.step, strand.attempt = left.step.number, left.step.attempt
        progress.steps[left.step.number] = left.step


def end(progress: Progress, strand: Strand) -> None:
    """End a strand; its fork does not wait for it any more."""
    strand.frames.clear()
    strand.status = "done"
    progress.going.pop(strand.id, None)
    if strand.id:
        progress.strands[strand.parent].open -= 1


def again(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Enter the body of a loop again."""
    frame = strand.frames.pop()
    loop, number = frame.prefix.rpartition("[")[0], frame.number + 1
    enter(plan, progress, strand, frame.path, prefix=f"{loop}[{number}]/", number=number)


def leave_loop(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Move a strand past a loop."""
    strand.frames.pop()
    advance(plan, progress, strand)


def loop_of(plan: FlowPlan, strand: Strand) -> tuple[LoopNode, Frame]:
    """The loop whose body a strand has finished, and the frame of the body."""
    frame = strand.frames[-1]
    placed = plan.paths[frame.path]
    loop = plan.node(placed.owner, placed.at)
    assert isinstance(loop, LoopNode)
    return loop, frame


def open_fork(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Start a strand for each path of a fork, from the same state."""
    place, frame = place_of(plan, strand), strand.frames[-1]
    fork = plan.node(frame.path, frame.at)
    assert isinstance(fork, ForkNode)
    strand.status = "forked"
    strand.open = len(fork.paths)
    for number in range(len(fork.paths)):
        id = f"{place}.{number}"
        child = Strand(id, strand.id, state={**strand.state})
        progress.strands[id] = child
        progress.going[id] = None
        strand.paths.append(id)
        enter(plan, progress, child, f"{frame.path}/{frame.at}.{number}", prefix=f"{id}/")


def children(progress: Progress, strand: Strand, place: str) -> list[Strand]:
    """The strands of a fork at a place, in declared order."""
    found: list[Strand] = []
    while (child := progress.strands.get(f"{place}.{len(found)}")) is not None:
        found.append(child)
    return found


def done_at(plan: FlowPlan, strand: Strand, number: int, attempt: int) -> CompletedStep | None:
    """An execution of the step that a strand is at, for its compensation, if it has one."""
    frame, step = strand.frames[-1], step_of(plan, strand)
    if step is None or step.compensate is None:
        return None
    place = place_of(plan, strand)
    return CompletedStep(place, strand.id, frame.path, frame.at, number=number, attempt=attempt)


def step_of(plan: FlowPlan, strand: Strand) -> StepNode | None:
    """The step that a strand is at, or the join of the fork that it is at."""
    match node_of(plan, strand):
        case StepNode() as node:
            return node
        case ForkNode(join=join):
            return join
        case _:
            return None


def decided_by(plan: FlowPlan, strand: Strand) -> str:
    """The user code that decides how a strand continues, in words; empty at a step."""
    match node_of(plan, strand):
        case None:
            loop, frame = loop_of(plan, strand)
            return f"the condition of loop {loop.name!r} in pass {frame.number}"
        case BranchNode(name=name):
            return f"the choice of branch {name!r}"
        case ForkNode(name=name) if strand.status == "forked":
            return f"the join of fork {name!r}"
        case ApprovalNode(name=name):
            return f"the context of approval {name!r}"
        case _:
            return ""


def fail(plan: FlowPlan, progress: Progress, strand: Strand, failure: StepFailure) -> None:
    """Propagate a failure that its step does not handle: an enclosing handler fails as well; a path
    of a fork may have its own handler."""
    for depth in range(len(strand.frames) - 1, -1, -1):
        part = plan.paths[strand.frames[depth].path].part
        if part == "handler":
            del strand.frames[depth:]
            fail(plan, progress, strand, strand.failures.pop())
            return
        if part == "rescue":
            failure = strand.failures.pop()
            break
        if part == "path" and (rescue := _rescue(plan, strand.frames[depth].path)):
            prefix = f"{strand.frames[depth].prefix}!"
            strand.frames.clear()
            strand.failures.append(failure)
            strand.failed = failure
            enter(plan, progress, strand, rescue, prefix=prefix)
            return
    strand.failed = failure
    strand.status = "failed"
    progress.failed.append(strand.id)


def failed(progress: Progress) -> list[Strand]:
    """The strands that failed, in the order of their failures."""
    return [progress.strands[id] for id in progress.failed]


def is_handled(plan: FlowPlan, progress: Progress, strand: Strand) -> bool:
    """Whether a failure in a strand, or in the strands around it, has a handler."""
    paths = [frame.path for frame in strand.frames]
    if any(plan.paths[path].part == "handler" or _rescue(plan, path) for path in paths):
        return True
    return bool(strand.id) and is_handled(plan, progress, progress.strands[strand.parent])


def _rescue(plan: FlowPlan, path: str) -> str:
    rescue = f"{path}!"
    return rescue if rescue in plan.paths else ""


def state_of(progress: Progress, strand: str) -> Strand:
    """The strand that has the state of a strand: itself, or the one that it was joined into."""
    while strand not in progress.strands:
        strand = strand.rpartition("/")[0] if "/" in strand else ""
    return progress.strands[strand]


def forget(progress: Progress, strand: Strand) -> None:
    """Drop the strands of the forks in a strand."""
    for id in strand.paths:
        forget(progress, progress.strands[id])
        del progress.strands[id]
        progress.going.pop(id, None)
        if id in progress.failed:
            progress.failed.remove(id)
    strand.paths, strand.open = [], 0


def clash(states: StateModel, paths: Sequence[Strand]) -> None:
    """Check that no two paths replaced the same field.

    Raises:
        InvalidUpdate: two did, so the result would depend on their order.
    """
    writers: dict[str, str] = {}
    for path in paths:
        for name in {name for delta in path.deltas for name in delta}:
            if states.reducers.get(name) != REPLACED:
                continue
            first = writers.setdefault(name, path.id)
            if first != path.id:
                raise InvalidUpdate(
                    f"Paths {first!r} and {path.id!r} both set {name!r}. Set it in one path only, "
                    f"or give the field a reducer: `Annotated[…, append]`."
                )
