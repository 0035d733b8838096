"""Checks of settings: valid values, and settings without effect."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from turnloom.assembly.logic.checking import as_sources, check_sources
from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.errors import Diagnostic, UsageError
from turnloom.flow.logic.checks.problems import is_count, is_number, problem
from turnloom.flow.logic.checks.steps import as_agent
from turnloom.flow.logic.plans import steps_of
from turnloom.flow.logic.walking import FAILURE
from turnloom.flow.spec.builder import StepSettings
from turnloom.flow.spec.nodes import ForkNode, PlacedPath, Site, StepNode
from turnloom.flow.spec.steps import AgentStep, Retry, agent_of
from turnloom.guards.spec import Selection
from turnloom.kernel.code import fits
from turnloom.kernel.values import Json, as_array, as_object, nearest, preview
from turnloom.variables.spec import BAKED_IN, BASE

# Paths in which `complete()` has no effect, and why.
_LAST = {
    "main": "the flow ends there anyway",
    "failure": "the run has failed anyway",
    "path": "the path of a fork is joined",
    "rescue": "the path of a fork is joined",
}

# Settings of a step that need another one, and why.
_NEEDS = (
    ("on_low_confidence", "require_confidence", "it requires no confidence"),
    ("recover", "on_failure", "nothing handles its failures"),
    ("compensate_timeout", "compensate", "it has no compensation"),
)


def check_effects(paths: Mapping[str, PlacedPath]) -> Iterator[Diagnostic]:
    """Check that every setting and every `complete()` has an effect."""
    for id, placed in paths.items():
        yield from _check_end(paths, id, placed)
        handler = placed.line.handler
        if handler is not None and placed.part != "path":
            message = "`Path.on_failure` has no effect outside a fork."
            yield problem(handler.site, "W127", message, "Give a step `on_failure=…`.")
    for node in steps_of(paths):
        for name, why, remedy in _idle(node):
            message = f"`{name}` of step {node.name!r} has no effect: {why}."
            yield problem(node.site, "W127", message, remedy)
        yield from _check_handlers(node)
    for node in steps_of({id: each for id, each in paths.items() if _is_after(id)}):
        if node.compensate is not None:
            why = "steps after a failure are not compensated"
            message = f"`compensate` of step {node.name!r} has no effect: {why}."
            yield problem(node.site, "W127", message, "Leave it out.")


def _is_after(id: str) -> bool:
    """Whether a path runs after compensation."""
    return id == FAILURE or id.startswith(f"{FAILURE}/")


def _check_end(
    paths: Mapping[str, PlacedPath], id: str, placed: PlacedPath
) -> Iterator[Diagnostic]:
    if not placed.line.ends:
        return
    why = _LAST.get(placed.part, "")
    if placed.part == "handler" and not _owner(paths, placed).recover:
        why = "without `recover`, the flow fails anyway"
    if why:
        message = f"`complete()` has no effect here: {why}."
        yield problem(placed.line.site, "W127", message, "Leave it out.")


def _owner(paths: Mapping[str, PlacedPath], placed: PlacedPath) -> StepNode:
    """The step whose failures a path handles."""
    node = paths[placed.owner].line.nodes[placed.at]
    step = node.join if isinstance(node, ForkNode) else node
    assert isinstance(step, StepNode)
    return step


def _idle(node: StepNode) -> Iterator[tuple[str, str, str]]:
    """The settings of a step without effect: the name, the reason and the remedy."""
    is_set = {
        "context": bool(node.context),
        "budget": node.budget is not None,
        "format": node.format != PLAIN,
        "select": node.select is not None,
    }
    if not isinstance(node.step, AgentStep):
        for name in (name for name, given in is_set.items() if given):
            yield name, "no agent takes it", "Make it an `AgentStep`, or leave it out."
    elif not node.context:
        for name in (name for name in ("budget", "format") if is_set[name]):
            yield name, "it has no `context`", "Give it sources, or leave it out."
    yield from _spare_engines(node)
    for name, other, why in _NEEDS:
        if _is_set(getattr(node, name)) and not _is_set(getattr(node, other)):
            yield name, why, f"Add `{other}=…`."


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _spare_engines(node: StepNode) -> Iterator[tuple[str, str, str]]:
    """Settings of engines without effect."""
    agent = as_agent(node.step)
    if agent is None:
        return
    if agent.engines and node.select is None:
        yield "engines", "`select` is not set", "Add `select=Selection(candidates=…)`."
    if agent_of(agent).engines and node.select is not None:
        yield "with_engines", "`select` decides who answers", "Keep one of them."
    if agent_of(agent).engines and agent.engine is not None:
        yield "engine", "`with_engines` decides who answers", "Keep one of them."


def _check_handlers(node: StepNode) -> Iterator[Diagnostic]:
    """Check that the paths for failures and low confidence have an effect."""
    wider: list[type] = []
    for given, line in node.on_failure:
        kind = cast(object, given)
        if not isinstance(kind, type):
            continue
        what = f"The path of step {node.name!r} for {kind.__name__}"
        if any(issubclass(kind, each) for each in wider):
            message = f"{what} is never taken: an earlier one takes all such failures."
            yield problem(node.site, "W127", message, "Put it first.")
        if not line.nodes and not node.recover:
            message = f"{what} is empty, but the flow fails anyway."
            yield problem(node.site, "W127", message, "Add `recover=True`, or a step.")
        wider.append(kind)
    low = node.on_low_confidence
    if low is not None and not low.nodes and not low.ends:
        message = f"`on_low_confidence` of step {node.name!r} is empty."
        yield problem(node.site, "W127", message, "Add a step, or `complete()`.")


def check_context(node: StepNode, state: Any, variables: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Check that the sources of a step name existing fields and variables."""
    given: object = node.context
    if not isinstance(given, list | tuple):
        message = f"`context` of step {node.name!r} is {preview(given)}."
        yield problem(node.site, "W126", message, "Give a list of sources.")
        return
    try:
        sources = as_sources(node.context)
    except UsageError as error:
        message, _, remedy = str(error).partition(". ")
        yield problem(node.site, "W126", f"Step {node.name!r}: {message}.", remedy)
        return
    budget = node.budget if isinstance(cast(object, node.budget), Budget) else None
    for found in check_sources(sources, state, _names(variables), budget=budget):
        message = f"Step {node.name!r}, {found.message}"
        yield problem(node.site, found.code, message, found.remedy)


def _names(variables: Mapping[str, Any]) -> list[str]:
    """The names of all variables."""
    return [*BASE, *BAKED_IN, *definitions_in(variables)]


def definitions_in(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of variables by name, from a list or a mapping."""
    outer = as_object(variables.get("context_variables", variables)) or {}
    declared = outer.get("definitions")
    listed = [as_object(each) or {} for each in as_array(declared) or ()]
    return as_object(declared) or {each["name"]: each for each in listed if "name" in each}


def check_values(node: StepNode) -> Iterator[Diagnostic]:
    """Check the values of a step's settings."""
    for name in node.unknown:
        yield _unknown(node, name)
    yield from _check_retry(node)
    for name in ("timeout", "compensate_timeout"):
        what = f"`{name}` of step {node.name!r}"
        yield from check_timeout(what, getattr(node, name), node.site)
    yield from _check_confidence(node)
    yield from _check_validate(node)
    for given, _ in node.on_failure:
        kind = cast(object, given)
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            message = f"`on_failure` of step {node.name!r} has a path for {preview(kind)}."
            yield problem(node.site, "W126", message, "Map classes of errors to paths.")
    for name, value, wanted in _typed(node):
        if value is not None and not isinstance(value, wanted):
            message = f"`{name}` of step {node.name!r} is {preview(value)}."
            yield problem(node.site, "W126", message, f"Give a {wanted.__name__}.")


def check_cache(node: StepNode, variables: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Check the cache settings of a step."""
    if node.cache is None:
        return
    seconds, shared = node.cache.seconds, node.cache.shared
    if not _is_time(seconds):
        message = f"`cache` of step {node.name!r} is {preview(seconds)}."
        yield problem(node.site, "W126", message, "Give seconds, True, or a Cache.")
    if not isinstance(cast(object, shared), bool):
        message = f"`shared` in `cache` of step {node.name!r} is {preview(shared)}."
        yield problem(node.site, "W126", message, "Give True or False.")
    secrets = [name for name, each in definitions_in(variables).items() if _is_secret(each)]
    if shared and secrets:
        message = (
            f"Step {node.name!r} shares its results between users, but reads secrets: "
            f"{', '.join(secrets)}."
        )
        yield problem(node.site, "W126", message, "Remove `shared`, or the secrets.")


def _is_secret(definition: Json) -> bool:
    return bool((as_object(definition) or {}).get("secret"))


# Settings for agents of boards only: the reason and the remedy.
_ELSEWHERE = {
    "inherit": (
        "every step reads the whole state",
        "Use a board to limit who may see an artifact.",
    ),
}

# Builder calls of an `AgentStep`.
_CALLS = ("with_engines", "with_components", "labels", "best_of", "max_concurrency")


def _unknown(node: StepNode, name: str) -> Diagnostic:
    """The diagnostic for an unknown setting of a step."""
    if name in _ELSEWHERE:
        why, remedy = _ELSEWHERE[name]
        return problem(node.site, "W131", f"`{name}` is not for flows: {why}.", remedy)
    message = f"Step {node.name!r} has no setting {name!r}."
    call = next((each for each in _CALLS if each.removeprefix("with_") == name), None)
    if call is not None:
        remedy = f"Set it on the agent: `{type(node.step).__name__}().{call}(…)`."
        return problem(node.site, "W126", message, remedy)
    near = nearest(name, StepSettings.__annotations__)
    known = ", ".join(StepSettings.__annotations__)
    remedy = f"Did you mean {near!r}?" if near else f"Known: {known}."
    return problem(node.site, "W126", message, remedy)


def _typed(node: StepNode) -> Iterator[tuple[str, Any, type]]:
    yield "budget", node.budget, Budget
    yield "format", node.format, ContextFormat
    yield "recover", node.recover, bool
    yield "select", node.select, Selection


def _check_retry(node: StepNode) -> Iterator[Diagnostic]:
    retry: Retry = node.retry
    if not is_count(retry.n, 0):
        message = f"`retry` of step {node.name!r} is {preview(retry.n)}."
        yield problem(node.site, "W122", message, "Give a whole number of 0 or more.")
    for name, least in (("delay", 0), ("factor", 1), ("max_delay", 0)):
        value = getattr(retry, name)
        if not is_number(value) or value < least:
            message = f"`{name}` in `retry` of step {node.name!r} is {preview(value)}."
            yield problem(node.site, "W122", message, f"Give {least} or more.")


def check_timeout(what: str, timeout: object, site: Site) -> Iterator[Diagnostic]:
    """Check a timeout."""
    if timeout is not None and not (isinstance(timeout, int | float) and _is_time(timeout)):
        message = f"{what} is {preview(timeout)}."
        yield problem(site, "W123", message, "Give a number of seconds above 0.")


def _is_time(seconds: float) -> bool:
    return is_number(seconds) and seconds > 0


def _check_confidence(node: StepNode) -> Iterator[Diagnostic]:
    least = node.require_confidence
    if least is None:
        return
    if not is_number(least) or not 0 <= least <= 1:
        message = f"`require_confidence` of step {node.name!r} is {preview(least)}."
        yield problem(node.site, "W124", message, "Give a number from 0 to 1.")
    if node.on_low_confidence is None:
        message = f"Step {node.name!r} requires confidence, but continues without it."
        remedy = "Add a path for low confidence: `on_low_confidence=…`."
        yield problem(node.site, "W125", message, remedy, severity="warning")


def _check_validate(node: StepNode) -> Iterator[Diagnostic]:
    match node.validate:
        case None:
            return
        case (holds, str()) if callable(holds) and fits(holds, 1):
            return
        case given:
            message = f"`validate` of step {node.name!r} is {preview(given)}."
            remedy = "Give a function of the state, and a message for when it is false."
            yield problem(node.site, "W126", message, remedy)
