"""Whether what ran in a run has its place in another plan of its flow."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from turnloom.agents.events import EffectDone, ToolReturned
from turnloom.errors import PlanChanged
from turnloom.flow.events import (
    ApprovalDecided,
    BranchTaken,
    ForkFailed,
    ForkJoined,
    ForkOpened,
    LoopEnded,
    LoopPassed,
    StateGiven,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from turnloom.flow.logic.plans import planned_reducers
from turnloom.flow.logic.states import StateModel, is_current
from turnloom.flow.logic.walking import (
    first_progress,
    loop_of,
    node_of,
    part_of,
    place_of,
    step_of,
)
from turnloom.flow.spec.nodes import (
    ApprovalNode,
    BranchNode,
    FlowPlan,
    ForkNode,
    Node,
    StepNode,
)
from turnloom.flow.spec.progress import Progress, Strand
from turnloom.kernel.values import Json, as_object
from turnloom.log.spec import Event, Fact

Folds = Mapping[type, Callable[[Any, Any], None]]


def misplaced_in(
    plan: FlowPlan, folds: Folds, states: StateModel, before: Any, events: Sequence[Event]
) -> Set[int]:
    """The positions of steps of a run that have no place in a plan, though they neither completed
    nor left anything. `before` is the form that they ran with.

    Raises:
        PlanChanged: something else has no place in it.
    """
    if before.plan.text == plan.text:
        return frozenset()
    _check_reducers(before.plan, plan)
    progress, open_steps, gone = first_progress(), _unfinished(events), set[str]()
    for event in events:
        if event.id.partition("/")[0] in gone:
            continue
        problem = _misfit(plan, progress, event.data)
        if problem and isinstance(event.data, StepStarted) and event.data.number in open_steps:
            gone |= {f"s{event.data.number}", f"t{event.data.turn}"}
            continue
        if problem:
            raise PlanChanged(problem + _REMEDY)
        fold = folds.get(event.data.__class__)
        if fold is not None:
            fold(progress, event.data)
    _check_states(states, events, progress)
    return {event.seq for event in events if event.id.partition("/")[0] in gone}


_REMEDY = " Restore it, or start a new run."


def _check_reducers(before: FlowPlan, present: FlowPlan) -> None:
    """Check that two plans reduce their common fields alike.

    Raises:
        PlanChanged: they do not.
    """
    old, new = planned_reducers(before.text), planned_reducers(present.text)
    for name in sorted(old.keys() & new.keys()):
        if old[name] != new[name]:
            raise PlanChanged(f"Field {name!r} of the state has another reducer now.{_REMEDY}")


def _unfinished(events: Sequence[Event]) -> Set[int]:
    """The numbers of the steps that did not complete, and left no effect."""
    begun: dict[str, int] = {}
    kept: set[int] = set()
    for event in events:
        fact, scope = event.data, event.id.partition("/")[0]
        if isinstance(fact, StepStarted):
            begun |= {f"s{fact.number}": fact.number, f"t{fact.turn}": fact.number}
        elif isinstance(fact, StepCompleted | StepFailed):
            kept.add(fact.number)
        elif isinstance(fact, EffectDone | ToolReturned) and scope in begun:
            kept.add(begun[scope])
    return {*begun.values()} - kept


def _check_states(states: StateModel, events: Sequence[Event], progress: Progress) -> None:
    """Check that the present model accepts the states of a run.

    Raises:
        PlanChanged: it does not.
    """
    given = [each.data.state for each in events if isinstance(each.data, StateGiven)]
    for state in [*given, *(strand.state for strand in progress.strands.values())]:
        if not is_current(states, state):
            raise PlanChanged(
                f"{states.model.__name__} does not accept the state of this run. Change the steps "
                "and the model of the state one after the other: a retry between them migrates it."
            )


def _misfit(plan: FlowPlan, progress: Progress, fact: Fact) -> str:
    """Why a fact has no place in a plan; empty if it has."""
    match fact:
        case StepStarted(undoes="") | StepCompleted() | StepFailed(what="") as fact:
            ran = f"Step {fact.step!r} ran at {fact.place!r}"
            is_there = _name(plan, progress, fact, StepNode) == fact.step
            handler = getattr(fact, "handler", "")
            is_there = is_there and (not handler or handler in plan.paths)
        case BranchTaken(branch=name):
            ran = f"Branch {name!r} took the path of {fact.case!r}"
            is_there = _name(plan, progress, fact, BranchNode) == name
            is_there = is_there and _is_case(plan, fact)
        case ForkOpened(fork=name) | ForkJoined(fork=name) | ForkFailed(fork=name) as fact:
            ran = f"Fork {name!r} ran at {fact.place!r}"
            is_there = _name(plan, progress, fact, ForkNode) == name
            is_there = is_there and _has_paths(plan, progress, fact)
        case LoopPassed(loop=name) | LoopEnded(loop=name):
            ran = f"Loop {name!r} ran at {fact.place!r}"
            is_there = _loop(plan, progress, fact.strand) == name
        case ApprovalDecided(approval=name, path=path):
            ran = f"Approval {name!r} was decided at {fact.place!r}"
            is_there = _name(plan, progress, fact, ApprovalNode) == name
            is_there = is_there and (not path or path in plan.paths)
        case _:
            return ""
    return "" if is_there else f"{ran}, which the flow does not have there now."


def _strand(progress: Progress, id: str) -> Strand | None:
    strand = progress.strands.get(id)
    return strand if strand is not None and strand.frames else None


def _name(plan: FlowPlan, progress: Progress, fact: Any, kind: type[Node]) -> str:
    """The name of the node at the place of a fact, if it is of a kind."""
    strand = _strand(progress, fact.strand) if hasattr(fact, "strand") else None
    if strand is None or place_of(plan, strand) != fact.place:
        return ""
    node = step_of(plan, strand) if kind is StepNode else node_of(plan, strand)
    return node.name if isinstance(node, kind) else ""


def _is_case(plan: FlowPlan, fact: BranchTaken) -> bool:
    """Whether the path that a branch took is still that of its value."""
    if not fact.path:
        return True
    placed = plan.paths.get(fact.path)
    node = plan.node(placed.owner, placed.at) if placed else None
    if not isinstance(node, BranchNode):
        return False
    label = fact.path.rpartition(".")[2]
    if label == "otherwise":
        return fact.case == label
    case = node.cases[int(label)][0]
    return str(getattr(case, "value", case)) == fact.case


def _has_paths(plan: FlowPlan, progress: Progress, fact: Any) -> bool:
    node = node_of(plan, progress.strands[fact.strand])
    is_opened = isinstance(fact, ForkOpened)
    return isinstance(node, ForkNode) and (not is_opened or len(node.paths) == len(fact.paths))


def _loop(plan: FlowPlan, progress: Progress, id: str) -> str:
    strand = _strand(progress, id)
    if strand is None or node_of(plan, strand) is not None or part_of(plan, strand) != "body":
        return ""
    return loop_of(plan, strand)[0].name


def changed_nodes(old_text: str, new_text: str) -> Iterator[str]:
    """The names of the nodes, and the other parts, that two plans do not have alike."""
    old, new = _nodes(json.loads(old_text)), _nodes(json.loads(new_text))
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield name


def _nodes(plan: dict[str, Any]) -> dict[str, Json]:
    """The nodes of a plan with their neighbours, by name, and its other parts."""
    found: dict[str, Any] = {part: data for part, data in plan.items() if part != "paths"}
    found.pop("version", None)
    for nodes in plan["paths"].values():
        for each in filter(as_object, nodes):
            found[next(each[key] for key in _NAMES if key in each)] = each
    return found


# The keys under which nodes have their names.
_NAMES = ("branch", "fork", "loop", "approval", "name")
