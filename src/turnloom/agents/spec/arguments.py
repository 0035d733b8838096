"""What can be said of an agent in code, on a board or in a flow.

Each function gives an argument as it is kept, and raises a UsageError when it cannot be one.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from turnloom.agents.spec.agents import CallComponent, Component, TurnComponent
from turnloom.kernel.arguments import as_function, as_made, wrong
from turnloom.kernel.code import fits

F = TypeVar("F", bound=Callable[..., Any])


def as_score(value: F) -> F:
    """A function that gives the score of an answer."""
    if not fits(as_function(value, "`score`"), 1):
        remedy = "Let it take one value, the `Answer` of a try: `lambda answer: len(answer.text)`."
        raise wrong("`score`", value, remedy)
    return value


def as_answerer(value: Any) -> Any:
    """An engine that was made, a function, or the name of a model with its provider."""
    if not isinstance(value, str):
        return as_made(value, "An engine")
    if ":" not in value:
        remedy = "Give an engine, a function, or a model with its provider, as 'openai:gpt-5'."
        raise wrong("An engine", value, remedy)
    return value


def as_component(component: Component) -> Component:
    """Something that wraps turns or calls."""
    if hasattr(component, "observe"):
        remedy = "Components see only their turn: give what observes to `Loom(observers=[…])`."
        raise wrong("A component", component, remedy)
    if isinstance(component, type) or not isinstance(
        cast(object, component), TurnComponent | CallComponent
    ):
        remedy = "Give an object with `around_turn` or `around_call`."
        raise wrong("A component", component, remedy)
    return component
