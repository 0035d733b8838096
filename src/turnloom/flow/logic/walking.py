"""Paths of a fork become one again."""

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

# What the main path is called, and the one that a failure of the whole flow leads to.
MAIN, FAILURE = "main", "failure"


def node_of(plan: FlowPlan, strand: Strand) -> Node | None:
    """What a strand has come to; nothing at the end of a path."""
    frame = strand.frames[-1]
    nodes = plan.paths[frame.path].line.nodes
    return nodes[frame.at] if frame.at < len(nodes) else None


def place_of(plan: FlowPlan, strand: Strand) -> str:
    """Where a strand is: the names of what it is in, and of what it has come to."""
    frame = strand.frames[-1]
    node = node_of(plan, strand)
    return f"{frame.prefix}{node.name}" if node else frame.prefix.rstrip("/")


def part_of(plan: FlowPlan, strand: Strand) -> str:
    """What part the innermost path plays that a strand walks."""
    return plan.paths[strand.frames[-1].path].part


def enter(
    plan: FlowPlan, progress: Progress, strand: Strand, path: str, prefix: str, number: int = 0
) -> None:
    """Walk a path from its beginning."""
    strand.frames.append(Frame(path, 0, prefix, number))
    strand.step = strand.attempt = 0
    strand.status = "ready"
    settle(plan, progress, strand)


def advance(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Go on behind the node that a strand has come to."""
    strand.frames[-1].at += 1
    strand.step = strand.attempt = 0
    strand.status = "ready"
    settle(plan, progress, strand)


def settle(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Leave the paths that a strand has come to the end of, as far as nothing is to be decided, and
    enter the loop that it has come to."""
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
            return
        placed = plan.paths[frame.path]
        if placed.part == "handler":
            return  # whether that recovers is put on record
        if placed.line.ends or placed.part in ("main", "failure", "path", "rescue"):
            end(progress, strand)
        elif placed.part == "body":
            return  # whether it is walked again is decided
        else:
            strand.frames.pop()
            strand.frames[-1].at += 1


def end(progress: Progress, strand: Strand) -> None:
    """Let a strand be at its end; whoever forked it does not wait for it any more."""
    strand.frames.clear()
    strand.status = "done"
    progress.going.pop(strand.id, None)
    if strand.id:
        progress.strands[strand.parent].open -= 1


def again(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Walk the body of a loop from its beginning once more."""
    frame = strand.frames.pop()
    loop, number = frame.prefix.rpartition("[")[0], frame.number + 1
    enter(plan, progress, strand, frame.path, prefix=f"{loop}[{number}]/", number=number)


def leave_loop(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Go on behind a loop whose body was walked."""
    strand.frames.pop()
    advance(plan, progress, strand)


def loop_of(plan: FlowPlan, strand: Strand) -> tuple[LoopNode, Frame]:
    """The loop whose body a strand has walked to its end, and the frame of that."""
    frame = strand.frames[-1]
    placed = plan.paths[frame.path]
    loop = plan.node(placed.owner, placed.at)
    assert isinstance(loop, LoopNode)
    return loop, frame


def open_fork(plan: FlowPlan, progress: Progress, strand: Strand) -> None:
    """Have each path of a fork walked by a strand of its own, from the same state."""
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
    """The strands that walk the paths of a fork at a place, in declared order."""
    found: list[Strand] = []
    while (child := progress.strands.get(f"{place}.{len(found)}")) is not None:
        found.append(child)
    return found


def done_at(plan: FlowPlan, strand: Strand) -> CompletedStep | None:
    """The step that a strand has come to, as something to be made up for, if it can be."""
    frame, step = strand.frames[-1], step_of(plan, strand)
    if step is None or step.compensate is None:
        return None
    place = place_of(plan, strand)
    return CompletedStep(
        place, strand.id, frame.path, frame.at, number=strand.step, attempt=strand.attempt
    )


def step_of(plan: FlowPlan, strand: Strand) -> StepNode | None:
    """The step that a strand has come to: itself, or what joins the paths of a fork."""
    match node_of(plan, strand):
        case StepNode() as node:
            return node
        case ForkNode(join=join):
            return join
        case _:
            return None


def decided_by(plan: FlowPlan, strand: Strand) -> str:
    """What decides how a strand goes on from what it has come to, in words, unless a step does."""
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
    """Let a failure that nobody handled where it happened go where it leads: whoever handles
    another failure has failed as well; a path of a fork may have its own handler."""
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
    """The strands that failed, the one that did so first coming first."""
    return [progress.strands[id] for id in progress.failed]


def is_handled(plan: FlowPlan, progress: Progress, strand: Strand) -> bool:
    """Whether what fails in a strand, or in what it is a path of, leads anywhere but to the end."""
    paths = [frame.path for frame in strand.frames]
    if any(plan.paths[path].part == "handler" or _rescue(plan, path) for path in paths):
        return True
    return bool(strand.id) and is_handled(plan, progress, progress.strands[strand.parent])


def _rescue(plan: FlowPlan, path: str) -> str:
    rescue = f"{path}!"
    return rescue if rescue in plan.paths else ""


def state_of(progress: Progress, strand: str) -> Strand:
    """Whoever has the state that a strand works on, or what it was joined into."""
    while strand not in progress.strands:
        strand = strand.rpartition("/")[0] if "/" in strand else ""
    return progress.strands[strand]


def forget(progress: Progress, strand: Strand) -> None:
    """Let go of the strands that walk paths of forks in a strand."""
    for id in strand.paths:
        forget(progress, progress.strands[id])
        del progress.strands[id]
        progress.going.pop(id, None)
        if id in progress.failed:
            progress.failed.remove(id)
    strand.paths, strand.open = [], 0


def clash(states: StateModel, paths: Sequence[Strand]) -> None:
    """See that no two paths replaced one field.

    Raises:
        InvalidUpdate: two did, and which of them counts would be chance.
    """
    writers: dict[str, str] = {}
    for path in paths:
        for name in {name for delta in path.deltas for name in delta}:
            if states.reducers.get(name) != REPLACED:
                continue
            first = writers.setdefault(name, path.id)
            if first != path.id:
                raise InvalidUpdate(
                    f"Paths {first!r} and {path.id!r} both set {name!r}. Let one of them, or give "
                    f"the field a reducer: `Annotated[…, append]`."
                )
