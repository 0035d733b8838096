"""The plan of a flow: its paths by id, and the text that runs are pinned to."""

import json
from collections.abc import Iterator, Mapping
from inspect import getsource, isroutine
from typing import Any, cast, get_args

from pydantic import BaseModel

from turnloom.agents.logic.plans import (
    PlanWriter,
    as_data,
    as_text,
    beside_data,
    data_of,
    parts_diff,
    schema_digest,
    told_digest,
    without,
    without_descriptions,
)
from turnloom.assembly.logic.descriptions import by_agent, describe_assembly
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.providers import ChosenProvider
from turnloom.assembly.spec.sources import Assembly, Share, Source
from turnloom.flow.logic.states import reducer_of
from turnloom.flow.logic.walking import FAILURE, MAIN
from turnloom.flow.spec.builder import step_name
from turnloom.flow.spec.nodes import (
    ApprovalNode,
    ApprovalRequest,
    BranchNode,
    FlowPlan,
    ForkNode,
    LoopNode,
    Node,
    NodeSequence,
    Option,
    PlacedPath,
    StepNode,
)
from turnloom.flow.spec.steps import AgentStep, Cache, Retry, agent_of, build
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.values import Json, as_object, fixed_text


def _named(code: object) -> str:
    """The name of code in a plan, without its module, which may have another name on resume."""
    return getattr(code, "__qualname__", None) or type(code).__qualname__


_WRITTEN = PlanWriter(
    (
        ApprovalRequest,
        Budget,
        Cache,
        ChosenProvider,
        ContextFormat,
        Option,
        Retry,
        Share,
        *get_args(Source),
    ),
    _named,
)


def placed_lines(main: NodeSequence, failure: NodeSequence | None) -> dict[str, PlacedPath]:
    """Every path of a flow by its id, those inside others after them."""
    found = dict(_below(MAIN, PlacedPath(main, "main")))
    if failure is not None:
        found |= dict(_below(FAILURE, PlacedPath(failure, "failure")))
    return found


def _below(id: str, placed: PlacedPath) -> Iterator[tuple[str, PlacedPath]]:
    yield id, placed
    for at, node in enumerate(placed.line.nodes):
        for label, part, line in lines_of(node):
            inner = f"{id}/{at}.{label}"
            yield from _below(inner, PlacedPath(line, part, id, at))
            if part == "path" and line.handler is not None:
                yield from _below(f"{inner}!", PlacedPath(line.handler, "rescue", id, at))


def lines_of(node: Node) -> Iterator[tuple[str, str, NodeSequence]]:
    """The paths of a node: the label, the part and the nodes of each."""
    match node:
        case StepNode():
            return _step_lines(node)
        case BranchNode():
            return _branch_lines(node)
        case ForkNode():
            return _fork_lines(node)
        case LoopNode(body=body):
            return iter([("body", "body", body)])
        case ApprovalNode():
            return _approval_lines(node)


def _branch_lines(node: BranchNode) -> Iterator[tuple[str, str, NodeSequence]]:
    for number, (_, line) in enumerate(node.cases):
        yield str(number), "case", line
    if node.otherwise is not None:
        yield "otherwise", "case", node.otherwise


def _fork_lines(node: ForkNode) -> Iterator[tuple[str, str, NodeSequence]]:
    for number, line in enumerate(node.paths):
        yield str(number), "path", line
    if node.join is not None:
        yield from _step_lines(node.join)


def _step_lines(node: StepNode) -> Iterator[tuple[str, str, NodeSequence]]:
    for number, (_, line) in enumerate(node.on_failure):
        yield f"failed.{number}", "handler", line
    if node.on_low_confidence is not None:
        yield "low", "low", node.on_low_confidence


def _approval_lines(node: ApprovalNode) -> Iterator[tuple[str, str, NodeSequence]]:
    if node.on_rejection is not None:
        yield "rejected", "rejected", node.on_rejection
    level, asking = 0, node.asking
    while isinstance(asking.then, ApprovalRequest):
        level, asking = level + 1, asking.then
    if asking.then is not None:
        yield f"late.{level}", "late", asking.then


def make_plan(
    name: str,
    version: str,
    state: Any,
    paths: Mapping[str, PlacedPath],
    timeout: float | None,
    beside: Mapping[str, Any],
) -> FlowPlan:
    """The plan of a flow with these paths, and its other declarations, by part.

    Raises:
        UsageError: its state has no JSON Schema.
    """
    written: dict[str, Json] = {
        "flow": name,
        "version": version,
        "state": _state_data(state),
        "timeout": timeout,
        "paths": {id: _line_data(each.line) for id, each in paths.items()},
        **beside_data(beside, _WRITTEN),
    }
    text = as_text(written)
    return FlowPlan(
        name=name,
        version=version,
        state=state,
        paths=paths,
        timeout=timeout,
        text=text,
        digest=fingerprint(text),
    )


def _state_data(state: type[BaseModel]) -> Json:
    """The model of a state: its schema, and the reducer of each field."""
    fields = sorted(state.model_fields.items())
    return {
        "schema": schema_digest(state, state.__name__),
        "reducers": {name: as_data(reducer_of(field), _WRITTEN) for name, field in fields},
    }


def planned_reducers(text: str) -> dict[str, Json]:
    """The reducers of the state's fields, from the text of a plan."""
    state = as_object(json.loads(text).get("state")) or {}
    return as_object(state.get("reducers")) or {}


def close(paths: Mapping[str, PlacedPath], main: NodeSequence) -> None:
    """Freeze the paths and steps of a plan; only the main path may still be extended."""
    for placed in paths.values():
        placed.line.is_built = placed.line is not main
    for step in (node.step for node in steps_of(paths)):
        if isinstance(step, AgentStep):
            build(cast(AgentStep[Any, Any], step))


def _line_data(line: NodeSequence) -> Json:
    nodes: list[Json] = [_node_data(node) for node in line.nodes]
    return [*nodes, "complete"] if line.ends else nodes


def _node_data(node: Node) -> Json:
    """A node by its kind; its paths have separate entries."""
    match node:
        case StepNode():
            return {"name": node.name, **_step_data(node)}
        case BranchNode(name=name, on=on, cases=cases):
            values: list[Json] = [as_data(value, _WRITTEN) for value, _ in cases]
            return {"branch": name, "on": as_data(on, _WRITTEN), "cases": values}
        case ForkNode(name=name, join=join):
            return {"fork": name, "join": join and {"name": join.name, **_step_data(join)}}
        case LoopNode(name=name, until=until, max_iterations=most):
            return {"loop": name, "until": as_data(until, _WRITTEN), "max_iterations": most}
        case ApprovalNode(name=name, asking=asking):
            return {"approval": name, **_asking_data(asking)}


# Fields written elsewhere, or without an influence on what is done.
_ELSEWHERE = ("name", "site", "on_failure", "on_low_confidence")


def _step_data(node: StepNode) -> dict[str, Json]:
    data = {key: value for key, value in data_of(node, _WRITTEN).items() if key not in _ELSEWHERE}
    kinds: list[Json] = [step_name(kind) for kind, _ in node.on_failure]
    return {**data, **({"handles": kinds} if kinds else {}), **_agent_data(node.step)}


def step_text(node: StepNode) -> str:
    """The declaration of a step with the schema that its model gets, and its source code if
    available."""
    data = {"name": node.name, "code": code_of(node.step), **_step_data(node)}
    output = _output_of(node.step)
    return as_text(data | ({"output": told_digest(output, output.__name__)} if output else {}))


def _output_of(step: Any) -> type[BaseModel] | None:
    """The output type of an agent step, if it has one."""
    return cast(Any, step).output_type if isinstance(step, AgentStep) else None


def code_of(step: Any) -> str:
    """The source of a step, or else its name. For an object, the source of its methods and the
    plain values of its class: `getsource` finds classes by name only, and a reloaded program may
    have another class of that name."""
    if isroutine(step):
        return _source(step)
    kinds = [each for each in type(step).__mro__ if not each.__module__.startswith(_OURS)]
    members = [member for kind in kinds for member in sorted(vars(kind).items(), key=_first)]
    return "\n".join([_named(step), *(_member(name, value) for name, value in members)])


# Modules whose classes are not user code.
_OURS = ("turnloom.", "builtins", "typing", "functools")


def _first(member: tuple[str, Any]) -> str:
    return member[0]


def _member(name: str, value: Any) -> str:
    """A member of a class as text."""
    if isroutine(value):
        return _source(value)
    is_plain = isinstance(value, str | int | float | bool) and not name.startswith("__")
    return f"{name} = {value!r}" if is_plain else ""


def _source(function: Any) -> str:
    try:
        return getsource(function)
    except (OSError, TypeError):
        return _named(function)


def code_digests(plan: FlowPlan) -> dict[str, str]:
    """The digests of a flow's user code, by name: its steps, its conditions, and the reducers of
    its state; code with the same name shares a digest."""
    found: dict[str, list[str]] = {}
    for name, field in plan.state.model_fields.items():
        reducer = reducer_of(field)
        if callable(reducer):
            found[f"state.{name}"] = [code_of(reducer)]
    for placed in plan.paths.values():
        for name, code in (each for node in placed.line.nodes for each in _codes(node)):
            found.setdefault(name, []).append(code_of(code))
    return {name: fingerprint("\n".join(texts)) for name, texts in found.items()}


def _codes(node: Node) -> Iterator[tuple[str, Any]]:
    """The user code of a node, by name."""
    match node:
        case StepNode():
            yield from _step_codes(node)
        case ForkNode(join=StepNode() as join):
            yield from _step_codes(join)
        case BranchNode(name=name, on=on):
            yield f"{name}.on", on
        case LoopNode(name=name, until=until):
            yield f"{name}.until", until
        case ApprovalNode(name=name, asking=ApprovalRequest(context=context)) if callable(context):
            yield f"{name}.context", context
        case _:
            return


def _step_codes(node: StepNode) -> Iterator[tuple[str, Any]]:
    yield node.name, node.step
    if node.compensate is not None:
        yield f"{node.name}.compensate", node.compensate
    if node.validate is not None:
        yield f"{node.name}.validate", node.validate[0]


def _agent_data(step: Any) -> dict[str, Json]:
    if not isinstance(step, AgentStep):
        return {}
    output = _output_of(step)
    return {
        "instructions": fixed_text(step.instructions(), "instructions()"),
        "output": schema_digest(output, output.__name__) if output else None,
        "tools": [as_data(each, _WRITTEN) for each in step.tools],
        "thread": step.thread,
        **data_of(agent_of(cast(AgentStep[Any, Any], step)), _WRITTEN, "max_concurrency"),
    }


def _asking_data(asking: ApprovalRequest) -> dict[str, Json]:
    data = {key: value for key, value in data_of(asking, _WRITTEN).items() if key != "then"}
    late = asking.then
    return {**data, "then": _asking_data(late)} if isinstance(late, ApprovalRequest) else data


def decide_alike(old_text: str, new_text: str) -> bool:
    """Whether two plans, given by their texts, differ in descriptions at most: the frames of turns
    record those."""
    return deciding(old_text) == deciding(new_text)


def deciding(text: str) -> dict[str, Json]:
    """A plan without its descriptions and instructions, from its text."""
    plan = without_descriptions(json.loads(text))
    paths: dict[str, list[Any]] = plan.get("paths", {})
    for nodes in paths.values():
        without(nodes, "instructions")
        for node in filter(as_object, nodes):
            without([node.get("join")], "instructions")
            _undescribe_options(node)
    return plan


def _undescribe_options(asking: Any) -> None:
    """Remove the descriptions of options from an approval, and from its escalations."""
    while as_object(asking):
        without(asking.get("options"), "description")
        asking = asking.get("then")


def plan_diff(old_text: str, new_text: str) -> str:
    """The diff of the texts of two plans, path by path; empty if they are equal."""
    return parts_diff(_parts(old_text), _parts(new_text))


def _parts(text: str) -> dict[str, Json]:
    plan: dict[str, Json] = json.loads(text)
    paths: Any = plan.pop("paths", {})
    return {"flow": plan, **{f"path {id!r}": nodes for id, nodes in paths.items()}}


def describe_plan(plan: FlowPlan) -> str:
    """The context of each agent step of a flow, in words."""
    steps = [node for node in steps_of(plan.paths) if isinstance(node.step, AgentStep)]
    return by_agent({node.name: _described(node) for node in steps})


def _described(node: StepNode) -> str:
    if not node.context:
        return "nothing"
    return describe_assembly(assembly_of(node))


def assembly_of(node: StepNode) -> Assembly:
    """The sources, budget and format of a step's context."""
    return Assembly(tuple(node.context), node.budget, node.format)


def steps_of(paths: Mapping[str, PlacedPath]) -> Iterator[StepNode]:
    """Every step of the paths, joins included."""
    for placed in paths.values():
        for node in placed.line.nodes:
            if isinstance(node, StepNode):
                yield node
            elif isinstance(node, ForkNode) and node.join is not None:
                yield node.join
