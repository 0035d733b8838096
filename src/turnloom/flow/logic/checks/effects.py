"""Whether everything that is said has an effect where it stands."""

from collections.abc import Iterator, Mapping
from typing import cast

from turnloom.assembly.spec.formats import PLAIN
from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.checks.steps import as_agent
from turnloom.flow.logic.plans import steps_of
from turnloom.flow.logic.walking import FAILURE
from turnloom.flow.spec.nodes import ForkNode, Placed, StepNode
from turnloom.flow.spec.steps import AgentStep, agent_of

# Paths after which it is over anyway.
_LAST = {
    "main": "the flow is over then anyway",
    "failure": "the run has failed anyway",
    "path": "the path of a fork is joined",
    "rescue": "the path of a fork is joined",
}

# Settings of a step that change nothing without another one, and why.
_NEEDS = (
    ("on_low_confidence", "require_confidence", "it requires none"),
    ("recover", "on_failure", "nothing handles its failures"),
    ("compensate_timeout", "compensate", "nothing makes up for it"),
)


def check_effects(paths: Mapping[str, Placed]) -> Iterator[Diagnostic]:
    """Whether every setting, and every end of a path, changes something."""
    for id, placed in paths.items():
        yield from _check_end(paths, id, placed)
        handler = placed.line.handler
        if handler is not None and placed.part != "path":
            message = "`Path.on_failure` has no effect outside of a fork."
            yield problem(handler.site, "W127", message, "Give a step `on_failure=…`.")
    for node in steps_of(paths):
        for name, why, remedy in _idle(node):
            message = f"`{name}` of step {node.name!r} has no effect: {why}."
            yield problem(node.site, "W127", message, remedy)
        yield from _check_handlers(node)
    for node in steps_of({id: each for id, each in paths.items() if _is_after(id)}):
        if node.compensate is not None:
            why = "steps after a failure are not made up for"
            message = f"`compensate` of step {node.name!r} has no effect: {why}."
            yield problem(node.site, "W127", message, "Leave it out.")


def _is_after(id: str) -> bool:
    """Whether a path is walked when what was done has been made up for."""
    return id == FAILURE or id.startswith(f"{FAILURE}/")


def _check_end(paths: Mapping[str, Placed], id: str, placed: Placed) -> Iterator[Diagnostic]:
    if not placed.line.ends:
        return
    why = _LAST.get(placed.part, "")
    if placed.part == "handler" and not _owner(paths, placed).recover:
        why = "without `recover`, the flow fails anyway"
    if why:
        message = f"`complete()` has no effect here: {why}."
        yield problem(placed.line.site, "W127", message, "Leave it out.")


def _owner(paths: Mapping[str, Placed], placed: Placed) -> StepNode:
    """The step whose failures a path handles."""
    node = paths[placed.owner].line.nodes[placed.at]
    step = node.join if isinstance(node, ForkNode) else node
    assert isinstance(step, StepNode)
    return step


def _idle(node: StepNode) -> Iterator[tuple[str, str, str]]:
    """The settings of a step that change nothing: which, why, and what to do."""
    said = {
        "context": bool(node.context),
        "budget": node.budget is not None,
        "format": node.format != PLAIN,
        "select": node.select is not None,
    }
    if not isinstance(node.step, AgentStep):
        for name in (name for name, is_said in said.items() if is_said):
            yield name, "no agent takes it", "Make it an `AgentStep`, or leave it out."
    elif not node.context:
        for name in (name for name in ("budget", "format") if said[name]):
            yield name, "it has no `context`", "Give it sources, or leave it out."
    yield from _spare_engines(node)
    for name, other, why in _NEEDS:
        if _is_said(getattr(node, name)) and not _is_said(getattr(node, other)):
            yield name, why, f"Add `{other}=…`."


def _is_said(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _spare_engines(node: StepNode) -> Iterator[tuple[str, str, str]]:
    """What is said of who answers for an agent, and changes nothing."""
    agent = as_agent(node.step)
    if agent is None:
        return
    if agent.engines and node.select is None:
        yield "engines", "nothing selects one of them", "Add `select=Selection(candidates=…)`."
    if agent_of(agent).engines and node.select is not None:
        yield "with_engines", "`select` says who answers", "Keep one of them."
    if agent_of(agent).engines and agent.engine is not None:
        yield "engine", "`with_engines` says who answers", "Keep one of them."


def _check_handlers(node: StepNode) -> Iterator[Diagnostic]:
    """Whether each path for failures, and that for too little confidence, does something."""
    wider: list[type] = []
    for given, line in node.on_failure:
        kind = cast(object, given)
        if not isinstance(kind, type):
            continue
        what = f"The path of step {node.name!r} for {kind.__name__}"
        if any(issubclass(kind, each) for each in wider):
            message = f"{what} is never taken: one before it takes all such failures."
            yield problem(node.site, "W127", message, "Put it first.")
        if not line.nodes and not node.recover:
            message = f"{what} is empty, and the flow fails anyway."
            yield problem(node.site, "W127", message, "Add `recover=True`, or a step.")
        wider.append(kind)
    low = node.on_low_confidence
    if low is not None and not low.nodes and not low.ends:
        message = f"`on_low_confidence` of step {node.name!r} is empty."
        yield problem(node.site, "W127", message, "Add a step, or `complete()`.")
