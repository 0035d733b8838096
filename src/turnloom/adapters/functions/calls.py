"""Functions of a workflow's code as tools and hooks."""

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

# Parameters of these names, or annotated `Context`, get the live context.
INJECTED = ("context_variables", "ctx")

_create: Any = create_model


# Models of parameters and their schemas, by what the parameters are.
Models = dict[Hashable, tuple[type[BaseModel], dict[str, Any]]]


class FunctionCallee:
    """A function: its schema from its signature, called in the loop or off it. Functions that are
    given the same `models` share those of parameters that are the same: most of what making one
    takes.

    Raises:
        TypeError: a parameter has a type that JSON cannot have.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        description: str = "",
        models: Models | None = None,
    ) -> None:
        self._call = detached(function)
        self._signature = inspect.signature(function)
        hints = _hints(function)
        self._context = _injected(self._signature, hints)
        self._model, parameters = self._parameters(name, hints, {} if models is None else models)
        self.may_ask = any(map(inspect.iscoroutinefunction, _layers(function)))
        told = description or inspect.getdoc(function) or ""
        self.schema = ToolSchema(name, told, deepcopy(parameters))

    def _parameters(
        self, name: str, hints: Mapping[str, Any], models: Models
    ) -> tuple[type[BaseModel], dict[str, Any]]:
        """A model of the parameters that are given from outside, and its schema."""
        hinted: dict[int, tuple[inspect.Parameter, Any]] = {}
        extra = "forbid"
        for number, each in enumerate(self._signature.parameters.values()):
            if each.name in self._context or each.kind is each.VAR_POSITIONAL:
                continue
            if each.kind is each.VAR_KEYWORD:
                extra = "allow"
                continue
            hinted[number] = each, hints.get(each.name, Any)
        # Equal types may be written in another order, and `True` equals 1: their texts differ.
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
        """What the function gives for these arguments.

        Raises:
            ValueError: they are not what its signature says.
        """
        positional, named = self._bound(arguments, context)
        return await self._call(*positional, **named)

    def _bound(
        self, arguments: Mapping[str, Json], context: Context
    ) -> tuple[list[Any], dict[str, Any]]:
        if taken := arguments.keys() & {*self._context, *INJECTED}:
            raise ValueError(_taken(taken))
        try:
            values = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ValueError(_told(error)) from error
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
    # Names that a model has of its own are taken, so fields are numbered.
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


def detached(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The function as something to await: an async one in the loop, a plain one in a thread."""
    if gives_awaitable(function):
        return function

    async def call(*positional: Any, **named: Any) -> Any:
        given = await in_thread(lambda: function(*positional, **named))
        return await given if inspect.isawaitable(given) else given

    return call


def takes_context(function: Callable[..., Any]) -> list[str]:
    """The parameters of a function that get the live context."""
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - a type that only who reads the code knows
        hints = {}
    return _injected(inspect.signature(function), hints)


def _injected(signature: inspect.Signature, hints: Mapping[str, Any]) -> list[str]:
    return [name for name in signature.parameters if name in INJECTED or hints.get(name) is Context]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters that are given from outside, names in quotes resolved.

    What is injected or given back may be of a type that is only known to who reads the code.

    Raises:
        TypeError: one of them cannot be resolved.
    """
    *_, target = _layers(function)
    said: dict[str, Any] = getattr(target, "__annotations__", {})
    needed = {name: hint for name, hint in said.items() if name not in (*INJECTED, "return")}
    scope: dict[str, Any] = getattr(target, "__globals__", {})
    try:
        named = SimpleNamespace(__annotations__=needed)
        return get_type_hints(named, scope, include_extras=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise TypeError(f"a type cannot be found: {error}") from error


def _layers(function: Any) -> Iterator[Any]:
    """What is called, and then what is inside it: decorated, partly applied, or behind an object's
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


def gives_awaitable(function: Any) -> bool:
    """Whether calling it does nothing but give something to await."""
    while isinstance(function, partial):
        function = function.func
    called: Any = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _taken(names: Iterable[str]) -> str:
    """What is wrong with arguments of names that the run fills in itself."""
    lines = (f"`{name}`: it is given by the run; leave it out" for name in sorted(names))
    return "The arguments do not fit. " + "; ".join(lines)


def _told(error: ValidationError) -> str:
    """What is wrong with arguments, a line for each."""
    lines = (
        f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)
    )
    return "The arguments do not fit. " + "; ".join(lines)
