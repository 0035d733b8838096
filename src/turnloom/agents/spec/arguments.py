"""Arguments that describe an agent in code, on a board or in a flow.

Each function returns the normalised argument, or raises a UsageError.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from turnloom.agents.spec.agents import CallComponent, Component, TurnComponent
from turnloom.kernel.arguments import as_function, as_made, wrong
from turnloom.kernel.code import fits

F = TypeVar("F", bound=Callable[..., Any])


def as_score(value: F) -> F:
    """A function that scores an answer."""
    if not fits(as_function(value, "`score`"), 1):
        remedy = "Pass a function of one `Answer`, as `lambda answer: len(answer.text)`."
        raise wrong("`score`", value, remedy)
    return value


def as_answerer(value: Any) -> Any:
    """An engine, a function, or a model name with its provider."""
    if not isinstance(value, str):
        return as_made(value, "An engine")
    if ":" not in value:
        remedy = "Pass an engine, a function, or a model with its provider, as 'openai:gpt-5'."
        raise wrong("An engine", value, remedy)
    return value


def as_component(component: Component) -> Component:
    """A component, which wraps turns or calls."""
    if hasattr(component, "observe"):
        remedy = "Components see only their turn. Pass observers to `Loom(observers=[…])`."
        raise wrong("A component", component, remedy)
    if isinstance(component, type) or not isinstance(
        cast(object, component), TurnComponent | CallComponent
    ):
        remedy = "Pass an object with `around_turn` or `around_call`."
        raise wrong("A component", component, remedy)
    return component
