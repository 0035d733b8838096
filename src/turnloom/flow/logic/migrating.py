"""Runs of another state model or plan: migrate them, or end and compensate them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from turnloom.agents.events import EffectDone, ToolReturned
from turnloom.agents.spec import RunState
from turnloom.errors import InvalidUpdate
from turnloom.flow.events import (
    FlowRewound,
    FlowStopped,
    StateGiven,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRecovered,
    StepSkipped,
    StepStarted,
)
from turnloom.flow.logic.endings import CANCELLED
from turnloom.flow.logic.flowing import FlowForm, FlowParts, unasked
from turnloom.flow.logic.folding import Folding
from turnloom.flow.logic.plans import deciding, placed_lines, planned_reducers, steps_of
from turnloom.flow.logic.states import StateModel, apply_change, is_current
from turnloom.flow.logic.walking import FAILURE, MAIN
from turnloom.flow.spec.nodes import (
    ApprovalNode,
    ApprovalRequest,
    BranchNode,
    FlowPlan,
    ForkNode,
    LoopNode,
    Node,
    NodeSequence,
    Site,
    StepNode,
)
from turnloom.flow.spec.progress import (
    CompensationState,
    CompletedStep,
    Progress,
    Step,
    StepFailure,
    Strand,
)
from turnloom.kernel.values import Json, as_array, as_object, error_text, preview
from turnloom.runs.actions import Action, Finish, Record, Work


def differs_in_state(old_text: str, new_text: str) -> bool:
    """Whether two plans, given by their texts, differ in the state at most, and reduce their common
    fields alike."""
    old, new = deciding(old_text), deciding(new_text)
    before, now = planned_reducers(old_text), planned_reducers(new_text)
    is_alike = all(before[name] == now[name] for name in before.keys() & now.keys())
    return is_alike and {**old, "state": ""} == {**new, "state": ""}


def migrate(plan: FlowPlan, states: StateModel, written: Mapping[str, Json]) -> dict[str, Json]:
    """A state converted to the current model: with defaults for new fields, or by `migrate`.

    Raises:
        InvalidUpdate: neither gives a valid state.
    """
    if is_current(states, written):
        return states.dump(states.load(written))
    if plan.migrate is None:
        gone = written.keys() - states.reducers.keys()
        why = f"field {min(gone)!r} was removed" if gone else _refused(states, written)
        raise InvalidUpdate(
            f"{states.model.__name__} does not accept the state of this run: {why}. Give new "
            "fields a default, or convert such states: `Flow(…, migrate=…)`."
        )
    _refuse_reduced(states, written)
    try:
        given = plan.migrate({**written})
    except Exception as error:
        raise InvalidUpdate(
            f"`migrate` failed: {type(error).__name__}: {error_text(error)}"
        ) from error
    found = given if isinstance(given, BaseModel) else _as_state(states, given)
    return states.dump(found)


def migrate_all(
    plan: FlowPlan, states: StateModel, progress: Progress
) -> dict[str, dict[str, Json]]:
    """The states of a run that change, by strand.

    Raises:
        InvalidUpdate: a state cannot be migrated, or a path of a fork changed a removed field.
    """
    found = {id: migrate(plan, states, each.state) for id, each in progress.strands.items()}
    for strand in progress.strands.values():
        for delta in strand.deltas:
            if not delta.keys() <= states.reducers.keys():
                raise InvalidUpdate(
                    f"A path of a fork changed {min(delta.keys() - states.reducers.keys())!r}, "
                    "which was removed from the state. Let the fork end first."
                )
    return {id: state for id, state in found.items() if state != progress.strands[id].state}


def _refuse_reduced(states: StateModel, written: Mapping[str, Json]) -> None:
    """Refuse removed fields that may have had a reducer, which is not known any more.

    Raises:
        InvalidUpdate: a list or an object was removed.
    """
    for name in sorted(written.keys() - states.reducers.keys()):
        if isinstance(written[name], list | dict):
            raise InvalidUpdate(
                f"Field {name!r} was removed from {states.model.__name__}, and may have had a "
                "reducer. Keep the field until no run has it."
            )


def _refused(states: StateModel, written: Mapping[str, Json]) -> str:
    try:
        states.load(written)
    except ValidationError as error:
        return error_text(error)
    return ""


def _as_state(states: StateModel, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise InvalidUpdate(f"`migrate` must return a state or its fields, not {preview(given)}.")
    try:
        return states.model.model_validate(given, by_name=True)
    except ValidationError as error:
        raise InvalidUpdate(f"`migrate` returned an invalid state: {error_text(error)}") from error


# The error of a step that cannot be compensated.
LOST = "PlanChanged"


class SalvageProgress(Progress, kw_only=True):
    """Progress of a run without its plan: the steps that ran, by name. The progress under the run's
    own plan does not fit, so this is read from the log."""

    broken: dict[str, CompletedStep]


class SalvageForm(FlowForm):
    """The form that ends a run of another plan: it only compensates. `undoable` are the steps that
    the run's own plan compensates, and `reducers` those of its state, since recorded changes keep
    their meaning."""

    progress = SalvageProgress

    def __init__(self, present: FlowForm, undoable: Set[str], reducers: Mapping[str, Json]) -> None:
        super().__init__(present.plan, _parts(present))
        self._undoable = undoable
        self._reducers = reducers or self.states.reducers
        steps = steps_of(present.plan.paths)
        self._nodes = {node.name: node for node in steps if node.compensate is not None}
        common = Folding(present.plan, self.states).folds
        self.folds: Mapping[type, Callable[[Any, Any], None]] = {
            StateGiven: self._on_given,
            StepStarted: self._on_started,
            EffectDone: common[EffectDone],
            ToolReturned: common[ToolReturned],
            StepCompleted: self._on_completed,
            StepFailed: self._on_failed,
            StepRecovered: self._on_recovered,
            StepSkipped: self._on_skipped,
            StepCompensated: self._on_compensated,
            FlowStopped: self._on_stopped,
            FlowRewound: self._on_rewound,
        }

    def begin(self) -> SalvageProgress:
        """The progress before any step; all strands share one state."""
        return SalvageProgress(strands={"": Strand("")}, broken={})

    def decide(self, state: RunState) -> Action | None:
        """Compensate the completed steps one by one, then end."""
        progress: SalvageProgress = state.progress
        undoing = progress.undoing
        if undoing is None:
            if state.cancel is None:
                return None
            stop = FlowStopped(CANCELLED, CANCELLED, state.cancel.reason)
            return Record((("stop", stop), *unasked(state.questions)))
        if progress.steps:
            return None
        if not undoing.left:
            return Finish("cancelled", at_once=True)
        done = undoing.left[0]
        return self._undo(progress, done) if done.path in self._nodes else _lose(progress, done)

    def work(self, state: RunState) -> Sequence[Work]:
        """The open compensations; every other step is cut off."""
        progress: SalvageProgress = state.progress
        undoing = progress.undoing
        if undoing is None:
            return ()
        return [
            Work(
                f"s{number}",
                number,
                step.node if step.turn else "",
                step.turn,
                is_over=number <= undoing.begun or not self._can_undo(undoing, step),
                is_alone=True,
            )
            for number, step in progress.steps.items()
        ]

    def _can_undo(self, undoing: CompensationState, step: Step) -> bool:
        done = [each for each in undoing.left if each.place == step.undoes]
        return bool(done) and done[0].path in self._nodes

    def step_at(self, done: CompletedStep) -> StepNode:
        """The step of the current plan with the name of a completed one."""
        return self._nodes[done.path]

    def _on_given(self, progress: SalvageProgress, fact: StateGiven) -> None:
        progress.strands[""].state = {**fact.state}

    def _on_started(self, progress: SalvageProgress, fact: StepStarted) -> None:
        progress.begun = max(progress.begun, fact.number)
        before = progress.steps.get(fact.number)
        step = Step(
            fact.number,
            fact.place,
            "",
            fact.step,
            attempt=fact.attempt,
            turn=fact.turn,
            undoes=fact.undoes,
        )
        step.acted = before is not None and before.acted
        if not fact.undoes and fact.step in self._undoable:
            step.done = CompletedStep(
                fact.place, fact.strand, fact.step, 0, number=fact.number, attempt=fact.attempt
            )
        progress.steps[fact.number] = step

    def _on_completed(self, progress: SalvageProgress, fact: StepCompleted) -> None:
        step = progress.steps.pop(fact.number, None)
        apply_change(self._reducers, progress.strands[""].state, fact.update, fact.reduced)
        if step is not None and step.done is not None and not fact.cached:
            progress.completed.append(step.done)

    def _on_failed(self, progress: SalvageProgress, fact: StepFailed) -> None:
        step = progress.steps.pop(fact.number, None)
        if step is not None and step.done is not None and fact.attempt:
            progress.broken.setdefault(fact.strand, step.done)

    def _on_recovered(self, progress: SalvageProgress, fact: StepRecovered) -> None:
        progress.broken.pop(fact.strand, None)

    def _on_skipped(self, progress: SalvageProgress, fact: StepSkipped) -> None:
        step, undoing = progress.steps.pop(fact.number, None), progress.undoing
        if step is None or step.done is None or not step.acted:
            return
        if undoing is None:
            progress.completed.append(step.done)
        elif step.done not in undoing.left:
            undoing.left.insert(0, step.done)

    def _on_compensated(self, progress: SalvageProgress, fact: StepCompensated) -> None:
        progress.begun = max(progress.begun, fact.number)
        progress.steps.pop(fact.number, None)
        apply_change(self._reducers, progress.strands[""].state, fact.update, fact.reduced)
        undoing = progress.undoing
        done = [each for each in undoing.left if each.place == fact.place] if undoing else []
        if undoing is not None and done:
            undoing.left.remove(done[0])

    def _on_stopped(self, progress: SalvageProgress, fact: FlowStopped) -> None:
        own = [*progress.broken.values()]
        steps = reversed(progress.steps.values())
        cut_off = [step.done for step in steps if step.acted and step.done is not None]
        left = [*own, *(each for each in cut_off if each not in own), *reversed(progress.completed)]
        failure = StepFailure("", fact.error, fact.message)
        progress.undoing = CompensationState(failure, fact.cause, progress.begun, left)

    def _on_rewound(self, progress: SalvageProgress, fact: FlowRewound) -> None:
        """Forget the steps that were compensated; the changes of the others are recorded again."""
        progress.completed = [each for each in progress.completed if each.place in fact.kept]
        progress.broken = {}
        for scope in fact.undone:
            progress.steps.pop(int(scope[1:]) if scope.startswith("s") else 0, None)
        progress.strands[""].state = {**fact.state}


def _lose(progress: Progress, done: CompletedStep) -> Record:
    """Record that a step cannot be compensated."""
    number = progress.begun + 1
    message = f"The flow no longer has a step {done.path!r} with `compensate`."
    fact = StepCompensated(done.path, done.place, number, "", error=LOST, message=message)
    return Record(((f"s{number}/lost", fact),))


def undoable_in(text: str) -> frozenset[str]:
    """The names of the steps that a plan of this text compensates."""
    return frozenset(_undoable(json.loads(text)))


def _undoable(part: Json) -> Iterator[str]:
    node = as_object(part) or {}
    if "compensate" in node:
        yield cast(str, node["name"])
    for each in (*node.values(), *(as_array(part) or ())):
        yield from _undoable(each)


_NOWHERE = Site("", 0)


def earlier_form(text: str, present: FlowForm) -> FlowForm:
    """The form of runs of an earlier plan, given by its text. It folds their logs, and has no
    code."""
    data = json.loads(text)
    shape = _Shape(data["paths"])
    failure = shape.line(FAILURE) if FAILURE in data["paths"] else None
    plan = FlowPlan(
        name=data["flow"],
        version=data["version"],
        state=present.plan.state,
        paths=placed_lines(shape.line(MAIN), failure),
        timeout=data["timeout"],
        text=text,
        digest="",
    )
    return FlowForm(plan, _parts(present))


def _parts(form: FlowForm) -> FlowParts:
    """What a form declares beside its steps."""
    return FlowParts(
        form.agents,
        form.outputs,
        form.variables,
        form.triggers,
        hooks=form.hooks,
        toolkit=form.toolkit,
    )


class _Shape:
    """The nodes of a plan from its text, without their code."""

    def __init__(self, paths: Mapping[str, Sequence[Any]]) -> None:
        self._paths = paths

    def line(self, id: str) -> NodeSequence:
        """The nodes of a path."""
        nodes = [each for each in self._paths[id] if as_object(each) is not None]
        made = NodeSequence([self._node(f"{id}/{at}", each) for at, each in enumerate(nodes)])
        made.end = len(nodes) if len(nodes) < len(self._paths[id]) else None
        made.handler = self._found(f"{id}!")
        return made

    def _found(self, id: str) -> NodeSequence | None:
        return self.line(id) if id in self._paths else None

    def _numbered(self, prefix: str) -> list[NodeSequence]:
        found: list[NodeSequence] = []
        while (line := self._found(f"{prefix}{len(found)}")) is not None:
            found.append(line)
        return found

    def _node(self, id: str, data: dict[str, Any]) -> Node:
        if "branch" in data:
            lines = zip(data["cases"], self._numbered(f"{id}."), strict=True)
            return BranchNode(
                name=data["branch"],
                site=_NOWHERE,
                on=_absent,
                cases=tuple(lines),
                otherwise=self._found(f"{id}.otherwise"),
            )
        if "fork" in data:
            join = data["join"] and self._step(id, data["join"])
            paths = tuple(self._numbered(f"{id}."))
            return ForkNode(name=data["fork"], site=_NOWHERE, paths=paths, join=join)
        if "loop" in data:
            return LoopNode(
                name=data["loop"],
                site=_NOWHERE,
                until=_absent,
                body=self.line(f"{id}.body"),
                max_iterations=data["max_iterations"],
            )
        if "approval" in data:
            rejected, asking = self._found(f"{id}.rejected"), self._asking(id, data)
            name = data["approval"]
            return ApprovalNode(name=name, site=_NOWHERE, asking=asking, on_rejection=rejected)
        return self._step(id, data)

    def _step(self, id: str, data: dict[str, Any]) -> StepNode:
        handlers = self._numbered(f"{id}.failed.")
        return StepNode(
            name=data["name"],
            step=None,
            site=_NOWHERE,
            on_low_confidence=self._found(f"{id}.low"),
            compensate=data.get("compensate"),
            on_failure=tuple((Exception, line) for line in handlers),
            recover=data.get("recover", False),
        )

    def _asking(self, id: str, data: dict[str, Any], level: int = 0) -> ApprovalRequest:
        late = data.get("then")
        then = self._asking(id, late, level + 1) if late else self._found(f"{id}.late.{level}")
        named = data["approver"]
        approver = named if isinstance(named, str) else tuple(named)
        return ApprovalRequest(approver=approver, then=then)


def _absent(state: object) -> None:
    """Stand for code of an earlier plan, which is not called."""
