"""Python functions as tools and hooks."""

import inspect
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from turnloom.agents.spec import ToolSchema
from turnloom.kernel.threads import in_thread
from turnloom.kernel.values import Json
from turnloom.variables.spec import Context

# Parameters with these names, or annotated `Context`, receive the live context.
INJECTED = ("context_variables", "ctx")

_create: Any = create_model


# Models of parameters and their schemas, by the parameters' types.
Models = dict[Hashable, tuple[type[BaseModel], dict[str, Any]]]


class FunctionCallee:
    """A function as a tool, with a schema made from its signature. Async functions run in the event
    loop, others in a thread. Functions with the same `models` share models of equal parameters,
    which are expensive to create.

    Raises:
        TypeError: the type of a parameter has no JSON form.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        description: str = "",
        models: Models | None = None,
    ) -> None:
        self._call = as_async(function)
        self._signature = inspect.signature(function)
        hints = _hints(function)
        self._context = _injected(self._signature, hints)
        self._model, parameters = self._parameters(name, hints, {} if models is None else models)
        self.may_ask = any(map(inspect.iscoroutinefunction, _layers(function)))
        about = description or inspect.getdoc(function) or ""
        self.schema = ToolSchema(name, about, deepcopy(parameters))

    def _parameters(
        self, name: str, hints: Mapping[str, Any], models: Models
    ) -> tuple[type[BaseModel], dict[str, Any]]:
        """The model of the parameters that callers pass, and its schema."""
        hinted: dict[int, tuple[inspect.Parameter, Any]] = {}
        extra = "forbid"
        for number, each in enumerate(self._signature.parameters.values()):
            if each.name in self._context or each.kind is each.VAR_POSITIONAL:
                continue
            if each.kind is each.VAR_KEYWORD:
                extra = "allow"
                continue
            hinted[number] = each, hints.get(each.name, Any)
        # Equal types may be written in another order, and `True` equals 1, so the key includes
        # their text.
        key = tuple(
            (number, each.name, hint, each.default, repr((hint, each.default)))
            for number, (each, hint) in hinted.items()
        )
        known = (extra, *key)
        config = ConfigDict(extra=extra, arbitrary_types_allowed=False)
        if not _is_hashable(known):
            return _model(name, config, hinted)
        if known not in models:
            models[known] = _model(name, config, hinted)
        return models[known]

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        """Call the function with these arguments.

        Raises:
            ValueError: the arguments do not fit the signature.
        """
        positional, named = self._bound(arguments, context)
        return await self._call(*positional, **named)

    def _bound(
        self, arguments: Mapping[str, Json], context: Context
    ) -> tuple[list[Any], dict[str, Any]]:
        if taken := arguments.keys() & {*self._context, *INJECTED}:
            raise ValueError(_reserved_message(taken))
        try:
            values = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ValueError(_validation_message(error)) from error
        given: dict[str, Any] = dict(values.model_extra or {}) | {
            field.alias or key: getattr(values, key)
            for key, field in type(values).model_fields.items()
        }
        given.update(dict.fromkeys(self._context, context))
        positional: list[Any] = []
        for each in self._signature.parameters.values():
            if each.kind is each.POSITIONAL_ONLY:
                positional.append(given.pop(each.name))
        return positional, given


def _model(
    name: str, config: ConfigDict, hinted: Mapping[int, tuple[inspect.Parameter, Any]]
) -> tuple[type[BaseModel], dict[str, Any]]:
    # Pydantic reserves some names, so fields are numbered.
    fields = {f"p{number}": (hint, _field(each)) for number, (each, hint) in hinted.items()}
    try:
        model: type[BaseModel] = _create(name, __config__=config, **fields)
        schema = model.model_json_schema()
    except PydanticUserError as error:
        raise TypeError(str(error).splitlines()[0]) from error
    schema.pop("title", None)
    for each in schema.get("properties", {}).values():
        each.pop("title", None)
    return model, schema


def _field(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return Field(alias=parameter.name)
    return Field(parameter.default, alias=parameter.name)


def _is_hashable(key: tuple[Any, ...]) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def as_async(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The function as an async one: unchanged if it is async, else run in a thread."""
    if is_async(function):
        return function

    async def call(*positional: Any, **named: Any) -> Any:
        given = await in_thread(lambda: function(*positional, **named))
        return await given if inspect.isawaitable(given) else given

    return call


def takes_context(function: Callable[..., Any]) -> list[str]:
    """The parameters of a function that receive the live context."""
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - a type that only type checkers know
        hints = {}
    return _injected(inspect.signature(function), hints)


def _injected(signature: inspect.Signature, hints: Mapping[str, Any]) -> list[str]:
    return [name for name in signature.parameters if name in INJECTED or hints.get(name) is Context]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters that callers pass, with names in quotes resolved.

    Injected parameters and the result may have types that only type checkers know.

    Raises:
        TypeError: a type cannot be resolved.
    """
    *_, target = _layers(function)
    annotations: dict[str, Any] = getattr(target, "__annotations__", {})
    needed = {name: hint for name, hint in annotations.items() if name not in (*INJECTED, "return")}
    scope: dict[str, Any] = getattr(target, "__globals__", {})
    try:
        named = SimpleNamespace(__annotations__=needed)
        return get_type_hints(named, scope, include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise TypeError(f"cannot resolve a type: {error}") from error


def _layers(function: Any) -> Iterator[Any]:
    """The callable, and the callables inside it: decorated, partially applied, or an object's
    `__call__`."""
    yield function
    while (inner := _inside(function)) is not None:
        function = inner
        yield function


def _inside(function: Any) -> Any:
    if isinstance(function, partial):
        return function.func
    if hasattr(function, "__wrapped__"):
        return function.__wrapped__
    if inspect.isroutine(function):
        return None
    return function.__init__ if inspect.isclass(function) else type(function).__call__


def is_async(function: Any) -> bool:
    """Whether a call returns an awaitable and does nothing else."""
    while isinstance(function, partial):
        function = function.func
    called: Any = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _reserved_message(names: Iterable[str]) -> str:
    """The message for arguments that the run provides itself."""
    lines = (f"`{name}`: the run provides it; leave it out" for name in sorted(names))
    return "The arguments do not fit. " + "; ".join(lines)


def _validation_message(error: ValidationError) -> str:
    """The message for invalid arguments, naming each."""
    lines = (
        f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)
    )
    return "The arguments do not fit. " + "; ".join(lines)
