"""Explain decisions of a flow: branches, forks, loops, approvals, failures and stops."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from turnloom.agents.events import QuestionAnswered, QuestionAsked
from turnloom.errors import UsageError
from turnloom.explain.logic.causes import Causes
from turnloom.explain.logic.describe import describe
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RunDeclarations
from turnloom.explain.spec.route import ChangedValue, FailedPart, FlowRouteExplained, WeighedRule
from turnloom.explain.spec.text import moment, one_line
from turnloom.flow import events as flow
from turnloom.flow.logic.branches import matching_case
from turnloom.flow.logic.flowing import FlowForm
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.log.events import ENDS
from turnloom.log.spec import Event

ROUTES = (
    flow.BranchTaken,
    flow.ForkOpened,
    flow.ForkFailed,
    flow.ForkJoined,
    flow.LoopPassed,
    flow.LoopEnded,
    flow.ApprovalDecided,
    flow.StepFailed,
    flow.FlowStopped,
)

# Links of the chain of causes that are shown.
LINKS = 3

# Facts that may follow a stop.
_AFTER = (flow.StepSkipped, flow.StepCompensated, flow.StepCompleted, flow.StepFailed)


# The label of a branch's path for values without a case.
OTHERWISE = "otherwise"


class _BranchText(NamedTuple):
    """A branch in the text of a plan."""

    cases: Sequence[Json]
    has_otherwise: bool


def is_flow(events: Sequence[Event]) -> bool:
    """Whether the run is that of a flow."""
    return events[0].data.form == FlowForm.form


def explain_flow_route(
    events: Sequence[Event], seq: int, declared: RunDeclarations = NOTHING_DECLARED
) -> FlowRouteExplained:
    """Explain the decision at an event, or the next one after it.

    Raises:
        UsageError: nothing was decided there or after it.
    """
    routes = [event for event in events if isinstance(event.data, ROUTES)]
    found = next((event for event in routes if event.seq >= seq), None)
    if found is None or seq < 1:
        known = ", ".join(str(event.seq) for event in routes) or "none"
        raise UsageError(f"Nothing was decided at seq {seq} or after it. Decisions: {known}.")
    return FlowRouteExplained(
        events[-1].run,
        found.seq,
        seq,
        found.kind,
        place=getattr(found.data, "place", ""),
        decided=describe(found.data),
        went_by=tuple(_went_by(events, found)),
        causes=Causes(events).of(found)[:LINKS],
        came_of=tuple(_came_of(events, found)),
        rules=tuple(_rules(found.data, declared.plan)),
    )


# The names of what decides in explanations: the value of a branch, the condition of a loop.
VALUE, CONDITION = "value", "condition"


def _rules(fact: Any, plan: str) -> Iterator[WeighedRule]:
    """The cases of a branch, or the condition of a loop, with what would have fired each."""
    match fact:
        case flow.LoopPassed(held=held):
            needed = () if held else (ChangedValue(CONDITION, False, True),)
            failed = () if held else (FailedPart(CONDITION, True, False),)
            yield WeighedRule(
                1,
                "the end of the loop",
                "until its condition holds",
                {CONDITION: held},
                fired=held,
                why_not="" if held else "the condition does not hold",
                failed=failed,
                needed=needed,
            )
        case flow.BranchTaken():
            yield from _cases(fact, _node(fact, plan))
        case _:
            return


def _cases(fact: flow.BranchTaken, node: _BranchText) -> Iterator[WeighedRule]:
    """Each case of a branch, then its path for other values."""
    taken = fact.path.rpartition(".")[2]
    for number, case in enumerate(node.cases):
        fires = matching_case(node.cases, case) == number
        yield WeighedRule(
            number + 1,
            str(case),
            f"{VALUE} == {preview(case)}",
            {VALUE: fact.value},
            fired=taken == str(number),
            why_not=f"{VALUE} is {preview(fact.value)}, not {preview(case)}",
            failed=() if taken == str(number) else (FailedPart(VALUE, case, fact.value),),
            needed=(ChangedValue(VALUE, fact.value, case),) if fires else (),
        )
    if node.has_otherwise:
        other = ChangedValue(VALUE, fact.value, None, anything_else=True)
        yield WeighedRule(
            len(node.cases) + 1,
            OTHERWISE,
            "any other value",
            {VALUE: fact.value},
            fired=taken == OTHERWISE,
            why_not=f"case {fact.case} matches",
            needed=(other,),
        )


def _node(fact: flow.BranchTaken, plan: str) -> _BranchText:
    """The branch of a decision, from the text of the plan; without cases if it is not there."""
    paths = (as_object(json.loads(plan).get("paths")) if plan else None) or {}
    for id, line in paths.items():
        for at, node in enumerate(as_array(line) or ()):
            known = as_object(node) or {}
            place = f"{id}/{at}."
            if known.get("branch") == fact.branch and fact.path.startswith(place):
                return _BranchText(
                    as_array(known.get("cases")) or [], f"{place}{OTHERWISE}" in paths
                )
    return _BranchText([], False)


def _went_by(events: Sequence[Event], route: Event) -> Iterator[str]:
    """The inputs of a decision that its event does not state."""
    match route.data:
        case flow.BranchTaken(value=value, case=case):
            yield f"Value: {preview(value)}; path: {case or 'none matches'}"
        case flow.LoopPassed(place=place) | flow.LoopEnded(place=place):
            for event in _passes(events, place, route.seq):
                yield f"seq {event.seq}: {describe(event.data)}"
        case flow.ApprovalDecided():
            yield from _approval(events, route)
        case flow.StepFailed(attempt=attempt, stack=stack, handler=handler):
            yield f"Attempt: {attempt}; handled by: {handler or 'no handler'}"
            yield from [stack] if stack else []
        case flow.FlowStopped(cause=cause):
            yield f"Cause: {cause}"
        case _:
            return


def _passes(events: Sequence[Event], place: str, until: int) -> Iterator[Event]:
    for event in events:
        fact = event.data
        if isinstance(fact, flow.LoopPassed) and fact.place == place and event.seq <= until:
            yield event


def _approval(events: Sequence[Event], route: Event) -> Iterator[str]:
    """The question to an approver, and the answer."""
    question = route.id.removesuffix("/decided")
    for event in events:
        match event.data:
            case QuestionAsked(question=id, to=to, prompt=prompt, due=due) if id == question:
                until = f", until {moment(due)}" if due else ""
                yield f"seq {event.seq}: {to} was asked {one_line(prompt)}{until}"
            case QuestionAnswered(question=id) if id == question:
                yield f"seq {event.seq}: {describe(event.data)}"
            case _:
                continue


def _came_of(events: Sequence[Event], route: Event) -> Iterator[str]:
    """The consequences: after a stop, everything up to the end; otherwise the next event in the
    strand."""
    after = [event for event in events if event.seq > route.seq]
    if isinstance(route.data, flow.FlowStopped):
        for event in after:
            if isinstance(event.data, _AFTER) or event.kind in ENDS:
                yield f"seq {event.seq}: {describe(event.data)}"
        return
    if (found := following(after, _strand(route.data))) is not None:
        yield f"seq {found.seq}: {describe(found.data)}"


def following(later: Sequence[Event], strand: str) -> Event | None:
    """The next decision or step in a strand, or the end of the run."""
    kinds = (flow.StepStarted, flow.StepRetried, *ROUTES)
    for event in later:
        is_next = isinstance(event.data, kinds) and _is_in(event.data, strand)
        if is_next or event.kind in ENDS:
            return event
    return None


def after_turn(events: Sequence[Event], later: Sequence[Event], turn: int) -> Event | None:
    """The next decision or step in the strand of an agent's turn."""
    steps = (event.data for event in events if isinstance(event.data, flow.StepStarted))
    strand = next((fact.strand for fact in steps if fact.turn == turn), "")
    return following(later, strand)


def _strand(fact: Any) -> str:
    return getattr(fact, "strand", "")


def _is_in(fact: Any, strand: str) -> bool:
    """Whether a fact belongs to a strand or to a path that it opened."""
    own = _strand(fact)
    return own == strand or own.startswith(strand) or isinstance(fact, flow.FlowStopped)
