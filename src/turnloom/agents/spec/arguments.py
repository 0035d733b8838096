"""What can be said of an agent in code, on a board or in a flow.

Each function gives an argument as it is kept, and raises a UsageError when it cannot be one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from turnloom.agents.spec.components import CallComponent, Component, TurnComponent
from turnloom.board.spec.values import is_name
from turnloom.errors import UsageError
from turnloom.kernel.values import is_text, preview

F = TypeVar("F", bound=Callable[..., Any])


def as_text(value: object, what: str) -> str:
    """A text that says something."""
    if not is_text(value) or not str(value).strip():
        raise wrong(what, value, "Give a text that is not empty.")
    return str(value)


def as_name(value: object, what: str) -> str:
    """A text that can name something."""
    if not is_name(value):
        raise wrong(what, value, "Give a name: a text that is not empty.")
    return str(value)


def as_names(values: object, what: str) -> frozenset[str]:
    """A set of names; one text is not taken for a set of letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong(what, values, "Give a set, as in {'name'}.")
    each = f"One of {what}"
    return frozenset(as_name(value, each) for value in cast(Iterable[object], values))


def as_count(value: object, what: str, least: int = 1) -> int:
    """A whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise wrong(what, value, f"Give a whole number from {least} on.")
    return value


def as_function(value: F, what: str) -> F:
    """Something that can be called."""
    if not callable(value):
        raise wrong(what, value, "Give a function.")
    return value


def as_answerer(value: Any) -> Any:
    """An engine that was made, a function, or the name of a model with its provider."""
    if not isinstance(value, str):
        return as_made(value, "An engine")
    if ":" not in value:
        remedy = "Give an engine, a function, or a model with its provider, as 'openai:gpt-5'."
        raise wrong("An engine", value, remedy)
    return value


def as_made(value: F, what: str) -> F:
    """Something that can be called; not a class, which only makes such things."""
    if isinstance(value, type):
        name = value.__name__
        raise UsageError(f"{what} is the class {name!r}. Make one of it, as in {name}().")
    return as_function(value, what)


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


def wrong(what: str, value: object, remedy: str) -> UsageError:
    """The error of an argument that cannot be what it is."""
    return UsageError(f"{what} is {preview(value)}. {remedy}")


def need(given: Sequence[object], what: str) -> None:
    """Refuse a call that names nothing."""
    if not given:
        raise UsageError(f"It names nothing. Give it {what} at least.")


def refuse_repeats(keys: Sequence[Any], problem: str) -> None:
    """Refuse a call that names something twice."""
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise UsageError(f"{problem.format(repr(key))} Drop one of them.")
