"""Whether steps can be taken: called with the state, or by an agent."""

from collections.abc import Callable, Iterator, Sequence
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import Any, cast, get_type_hints

from pydantic import BaseModel

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.spec.builder import Path
from turnloom.flow.spec.nodes import Site, StepNode, Unmade
from turnloom.flow.spec.steps import AgentStep, function_of
from turnloom.guards.spec import Selection
from turnloom.kernel.signatures import fits
from turnloom.kernel.values import preview

# What no step gives, although a program may say that it does.
_NO_UPDATE = (BaseModel, str, int, float, list, tuple, set)


def check_step(node: StepNode) -> Iterator[Diagnostic]:
    """Whether a step, and what makes up for it, can be taken."""
    what = f"Step {node.name!r}"
    agent = as_agent(node.step)
    if agent is not None:
        yield from _check_agent(what, agent, node.site)
        yield from _check_candidates(node, agent)
    else:
        yield from _check_code(what, node.step, node.site)
    if isinstance(node.compensate, AgentStep):
        message = f"`compensate` of step {node.name!r} is an agent."
        yield problem(node.site, "W121", message, "Give a function of the state and the context.")
    elif node.compensate is not None:
        yield from _check_code(f"`compensate` of step {node.name!r}", node.compensate, node.site)


def _check_candidates(node: StepNode, agent: AgentStep[Any, Any]) -> Iterator[Diagnostic]:
    """Whether whoever may be selected is there."""
    if isinstance(node.select, Selection):
        for name in (each for each in node.select.candidates if each not in agent.engines):
            message = f"`select` of step {node.name!r} names {name!r}, which is none of `engines`."
            known = ", ".join(agent.engines) or "none"
            yield problem(node.site, "W126", message, f"Correct it. There is: {known}.")


def as_agent(step: Any) -> AgentStep[Any, Any] | None:
    """A step that an agent takes, if one does."""
    return cast(AgentStep[Any, Any], step) if isinstance(step, AgentStep) else None


def _check_code(what: str, step: Any, site: Site) -> Iterator[Diagnostic]:
    if isinstance(step, Unmade):
        message = f"{what} cannot be made of {step.kind.__name__}: {step.why}."
        yield problem(site, "W121", message, f"Give one that is made: `{step.kind.__name__}(…)`.")
        return
    if isinstance(step, Path):
        message = f"{what} is a path or a flow, where one step is wanted."
        remedy = "Give a step. As `join`, a path of one step may give it settings, and no more."
        yield problem(site, "W121", message, remedy)
        return
    function = function_of(step)
    remedy = "Let it take the state, or the state and the context: `(state)`, `(state, ctx)`."
    if not callable(function):
        yield problem(site, "W121", f"{what} is {preview(step)}, which cannot be called.", remedy)
    elif not fits(function, 1) and not fits(function, 2):
        message = f"{what} can be called neither with one value nor with two."
        yield problem(site, "W121", message, remedy)
    else:
        yield from _check_given(what, function, site)


def _check_given(what: str, function: Callable[..., Any], site: Site) -> Iterator[Diagnostic]:
    """Whether a step can give what it changes."""
    if isgeneratorfunction(function) or isasyncgenfunction(function):
        message = f"{what} gives one thing after the other."
        yield problem(site, "W121", message, "Let it return what it changes, once.")
    given = return_hint(function)
    if isinstance(given, type) and issubclass(given, _NO_UPDATE):
        message = f"{what} gives a {given.__name__}."
        yield problem(site, "W121", message, "Let it give the fields that change: a dict.")


def return_hint(function: Callable[..., Any]) -> Any:
    """What a function is annotated to give, if that can be said."""
    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError):
        return None


def _check_agent(what: str, step: AgentStep[Any, Any], site: Site) -> Iterator[Diagnostic]:
    kind, plain = type(step), cast(type[AgentStep[Any, Any]], AgentStep)
    if kind.apply is plain.apply:
        message = f"{what} does not say what the answer changes."
        yield problem(site, "W121", message, "Define `apply(self, state, answer, context)`.")
    elif not fits(step.apply, 3):
        message = f"`apply` of {what.lower()} cannot be called with three values."
        yield problem(site, "W121", message, "Let it be `apply(self, state, answer, context)`.")
    if kind.build_messages is not plain.build_messages:
        if not fits(step.build_messages, 2):
            message = f"`build_messages` of {what.lower()} cannot be called with two values."
            yield problem(
                site, "W121", message, "Let it be `build_messages(self, state, context)`."
            )
    elif kind.user_prompt is plain.user_prompt or not fits(step.user_prompt, 1):
        message = f"{what} does not say what its agent is asked about the state."
        yield problem(site, "W121", message, "Define `user_prompt(self, state)`.")
    yield from _check_tools(what, step, site)
    output = cast(object, step.output_type)
    if output is not None and not (isinstance(output, type) and issubclass(output, BaseModel)):
        message = f"`output_type` of {what.lower()} is {preview(output)}."
        yield problem(site, "W121", message, "Give a pydantic model, or leave it out for text.")


def _check_tools(what: str, step: AgentStep[Any, Any], site: Site) -> Iterator[Diagnostic]:
    for tool in cast(Sequence[Any], step.tools):
        if not callable(tool) or not getattr(tool, "__name__", "").isidentifier():
            message = f"One of `tools` of {what.lower()} is {preview(tool)}."
            yield problem(site, "W126", message, "Give functions that have names: use `def`.")
