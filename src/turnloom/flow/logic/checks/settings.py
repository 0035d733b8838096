"""Whether settings of steps have values that they can have."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.contexts import definitions_in
from turnloom.flow.logic.checks.problems import is_count, is_number, problem
from turnloom.flow.spec.builder import StepSettings
from turnloom.flow.spec.nodes import Site, StepNode
from turnloom.flow.spec.steps import Retry
from turnloom.guards.spec import Selection
from turnloom.kernel.signatures import fits
from turnloom.kernel.values import Json, as_object, nearest, preview


def check_values(node: StepNode) -> Iterator[Diagnostic]:
    """Whether a step can be taken as its settings say."""
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
    """Whether results of a step can be kept as its settings say."""
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
            f"Step {node.name!r} shares its results between users, and reads secrets: "
            f"{', '.join(secrets)}."
        )
        yield problem(node.site, "W126", message, "Leave `shared` out, or the secrets.")


def _is_secret(definition: Json) -> bool:
    return bool((as_object(definition) or {}).get("secret"))


# What agents of boards can have and steps of flows cannot: why, and what to do.
_ELSEWHERE = {
    "inherit": (
        "every step reads the whole state",
        "Publish what only some may see on a board.",
    ),
}

# What calls of an `AgentStep` say.
_CALLS = ("with_engines", "with_components", "labels", "best_of", "max_concurrency")


def _unknown(node: StepNode, name: str) -> Diagnostic:
    """That a step has no setting of a name, and why if that is known."""
    if name in _ELSEWHERE:
        why, remedy = _ELSEWHERE[name]
        return problem(node.site, "W131", f"`{name}` is not for flows: {why}.", remedy)
    message = f"Step {node.name!r} has no setting {name!r}."
    call = next((each for each in _CALLS if each.removeprefix("with_") == name), None)
    if call is not None:
        remedy = f"Say it of the agent: `{type(node.step).__name__}().{call}(…)`."
        return problem(node.site, "W126", message, remedy)
    near = nearest(name, StepSettings.__annotations__)
    known = ", ".join(StepSettings.__annotations__)
    remedy = f"Did you mean {near!r}?" if near else f"There is: {known}."
    return problem(node.site, "W126", message, remedy)


def _typed(node: StepNode) -> Iterator[tuple[str, Any, type]]:
    yield "budget", node.budget, Budget
    yield "format", node.format, ContextFormat
    yield "recover", node.recover, bool
    yield "select", node.select, Selection


def _check_retry(node: StepNode) -> Iterator[Diagnostic]:
    retry: Retry = node.retry
    if not is_count(retry.n, 0):
        message = f"Step {node.name!r} is to be tried again {preview(retry.n)} times."
        yield problem(node.site, "W122", message, "Let `retry` be 0 or more.")
    for name, least in (("delay", 0), ("factor", 1), ("max_delay", 0)):
        value = getattr(retry, name)
        if not is_number(value) or value < least:
            message = f"`{name}` in `retry` of step {node.name!r} is {preview(value)}."
            yield problem(node.site, "W122", message, f"Let it be {least} or more.")


def check_timeout(what: str, timeout: object, site: Site) -> Iterator[Diagnostic]:
    """Whether something can be given so many seconds."""
    if timeout is not None and not (isinstance(timeout, int | float) and _is_time(timeout)):
        message = f"{what} is {preview(timeout)}."
        yield problem(site, "W123", message, "Give seconds, more than 0.")


def _is_time(seconds: float) -> bool:
    return is_number(seconds) and seconds > 0


def _check_confidence(node: StepNode) -> Iterator[Diagnostic]:
    least = node.require_confidence
    if least is None:
        return
    if not is_number(least) or not 0 <= least <= 1:
        message = f"`require_confidence` of step {node.name!r} is {preview(least)}."
        yield problem(node.site, "W124", message, "Let it be from 0 to 1.")
    if node.on_low_confidence is None:
        message = f"Step {node.name!r} requires confidence, and goes on without it."
        remedy = "Say what comes then: `on_low_confidence=…`."
        yield problem(node.site, "W125", message, remedy, "warning")


def _check_validate(node: StepNode) -> Iterator[Diagnostic]:
    match node.validate:
        case None:
            return
        case (holds, str()) if callable(holds) and fits(holds, 1):
            return
        case given:
            message = f"`validate` of step {node.name!r} is {preview(given)}."
            remedy = "Give a function of the state, and what is said if it does not hold."
            yield problem(node.site, "W126", message, remedy)
