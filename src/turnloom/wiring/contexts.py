"""Context providers and sources of a workflow folder."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from turnloom.agents.spec import ProviderChoice
from turnloom.assembly.service.gathering import Choices
from turnloom.assembly.service.providers import (
    DefaultCorrelationProvider,
    FilteredContextProvider,
    TranscriptProvider,
)
from turnloom.assembly.spec import (
    ChosenProvider,
    ContextProvider,
    ContextRequest,
    ContextSlice,
    RagCollection,
)
from turnloom.assembly.spec.sources import Assembly, Source, Summarise
from turnloom.board.spec import TypeRegistry, type_name
from turnloom.conversation.logic.rosters import PlacedChoice
from turnloom.conversation.logic.sources import budget_of, format_of, make_source, stand_in
from turnloom.errors import UsageError
from turnloom.kernel.documents import Path
from turnloom.kernel.values import error_text, nearest
from turnloom.wiring.adapters import adapter
from turnloom.wiring.code import PROVIDERS, Code, Place
from turnloom.wiring.collections import Collections

# Where something stands that is said under these keys.
Where = Callable[..., Place]

# The provider that is to be asked; nothing, and a problem, if it cannot be had.
Ask = Callable[[ProviderChoice, Where], ChosenProvider | None]

_DECLARE_IT = (
    f"Declare it in {PROVIDERS!r} with `class Name(RagCollection)`, or let the program that starts "
    "runs say `app.register_collection(Name, adapter)` before."
)


class Registered(NamedTuple):
    """The collections that are registered, if there is an app; with `is_final`, a run is to start
    with them."""

    collections: Collections | None = None
    is_final: bool = True

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return [*self.collections.names] if self.collections else []

    def find(self, name: str) -> type[RagCollection] | None:
        """The one of a name."""
        return self.collections.known(name) if self.collections else None


class Sources:
    """Makes the sources that agents declare; what cannot be had is a problem of the code."""

    def __init__(
        self, code: Code, members: Mapping[str, Any], registered: Registered, ask: Ask
    ) -> None:
        self.code = code
        self.ask = ask
        self._own = {each.name: each for each in members.values() if _is_collection(each)}
        self._registered = registered

    def assembly(self, placed: PlacedChoice) -> Assembly | None:
        """What an agent's context is assembled from; nothing if that cannot be."""
        choice = placed.choice
        made = [self._source(placed, number) for number in range(len(choice.sources))]
        sources = tuple(each for each in made if each is not None)
        if len(sources) < len(made):
            return None
        try:
            return Assembly(sources, budget_of(choice), format_of(choice))
        except UsageError as error:
            self.code.note(placed.place("format"), "W012", str(error))
            return None

    def _source(self, placed: PlacedChoice, number: int) -> Source | None:
        choice = placed.choice.sources[number]

        def at(*keys: str | int) -> Place:
            return placed.place("sources", number, *keys)

        try:
            return make_source(choice, _Behind(self, at))
        except UsageError as error:
            self.code.note(at(choice.kind), "W012", str(error))
            return None

    def collection(self, name: str, place: Place) -> type[RagCollection]:
        """A collection by its name; one that nobody declares is a problem where it is named."""
        found = self._own.get(name) or self._registered.find(name)
        if found is not None:
            return found
        meant = nearest(name, [*self._own, *self._registered.names])
        remedy = f"Did you mean {meant!r}?" if meant else _DECLARE_IT
        severity = "error" if self._registered.is_final else "warning"
        message = f"Collection {name!r} is neither declared in {PROVIDERS!r} nor registered."
        self.code.note(place, "W057", message, remedy, severity=severity)
        return stand_in(name)


@dataclass(frozen=True, slots=True)
class _Behind:
    """What stands behind the names of one source."""

    sources: Sources
    at: Where

    def collection(self, name: str, at: Path, /) -> type[RagCollection]:
        return self.sources.collection(name, self.at(*at))

    def summarise(self, name: str, at: Path, /) -> Summarise | None:
        return self.sources.code.function(PROVIDERS, name, self.at(*at))

    def provider(self, choice: ProviderChoice, /) -> ChosenProvider | None:
        return self.sources.ask(choice, self.at)


def _is_collection(member: object) -> bool:
    is_class = isinstance(member, type) and issubclass(member, RagCollection)
    return is_class and member is not RagCollection


Make = Callable[..., ContextProvider]

# What can be named without any code; `config` is what they are made with.
SHIPPED: dict[str, Make] = {
    "correlation": DefaultCorrelationProvider,
    "transcript": TranscriptProvider,
}


async def nothing(request: ContextRequest) -> ContextSlice:
    """Gives nothing, in the place of a provider that can be done without."""
    return ContextSlice([])


# What can also be named as a fallback.
FALLBACKS: dict[str, Make] = {**SHIPPED, "nothing": lambda: nothing}

_WRITE_IT = "Write `async def NAME(request: ContextRequest) -> ContextSlice`."


class ContextProblem(Exception):
    """Something that cannot give context, or cannot be asked for: the code of the problem, what it
    is, and what to do."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(code, message, remedy)


class FolderContexts:
    """The providers that agents choose, and the types of artifacts that these may ask for.

    What cannot be had is a problem of the workflow's code.
    """

    def __init__(
        self, code: Code, declared: Mapping[str, Sequence[PlacedChoice]], registered: Registered
    ) -> None:
        self._code = code
        self._declared = declared
        members = code.members(PROVIDERS) if declared else None
        self._loads = members is not None
        self._members: Mapping[str, Any] = members or {}
        self._made: dict[str, ContextProvider] = {}
        self._sources = Sources(code, self._members, registered, self._choice)

    def chosen(self) -> dict[str, ChosenProvider | Assembly]:
        """What gives each agent its context, as far as it can be had."""
        if not self._loads:
            return {}
        made = {agent: self._context(declared) for agent, declared in self._declared.items()}
        return {agent: context for agent, context in made.items() if context is not None}

    def types(self, beside: TypeRegistry | None) -> TypeRegistry:
        """The types that the code has, beside those that the app knows."""
        known = TypeRegistry(beside)
        for model in filter(type_name, self._members.values()):
            try:
                _check_type(model, self._members["__name__"])
                known.register(model)
            except ContextProblem as unfit:
                self._code.note(self._place(model), *unfit.args)
            except UsageError as error:
                self._code.note(self._place(model), "W051", str(error))
        return known

    def _place(self, model: type) -> Place:
        """Where the code has a type: the line of its class, or the file if no line has it."""
        file = self._code.file(self._members["__file__"])
        if model.__module__ != self._members["__name__"]:
            return file, 1
        try:
            return file, inspect.getsourcelines(model)[1]
        except OSError:  # a class that was made by a call
            return file, 1

    def _context(self, declared: Sequence[PlacedChoice]) -> ChosenProvider | Assembly | None:
        if declared[0].choice.sources:
            return self._sources.assembly(declared[0])
        made = [self._choice(each.choice, each.place) for each in declared]
        choices = [each for each in made if each is not None]
        return _several(choices) if len(choices) > 1 else next(iter(choices), None)

    def _choice(self, choice: ProviderChoice, at: Where) -> ChosenProvider | None:
        """The provider that is to be asked, if it can be had."""
        is_own = choice.provider in self._members
        arguments, told = ({}, choice.config) if is_own else (choice.config, {})
        provider: ContextProvider | None = None
        if choice.filter is not None:
            provider = FilteredContextProvider(choice.filter)
        elif choice.provider is not None:
            provider = self._had(choice.provider, at("provider"), SHIPPED, arguments)
        fallback: ContextProvider | None = None
        if choice.fallback is not None:
            fallback = self._had(choice.fallback, at("fallback"), FALLBACKS, {})
        if provider is None:
            return None
        return ChosenProvider(
            provider, fallback, choice.timeout_s, told, name=choice.provider or ""
        )

    def _had(
        self, name: str, place: Place, known: Mapping[str, Make], arguments: Mapping[str, Any]
    ) -> ContextProvider | None:
        """A provider by its name; nothing, and a problem where it is named, if there is none."""
        if not self._members and name not in known and not nearest(name, known):
            self._code.function(PROVIDERS, name, place)  # says that the file is not there
            return None
        try:
            return self._find(name, known, arguments)
        except ContextProblem as unfit:
            self._code.note(place, *unfit.args)
            return None

    def _find(
        self, name: str, known: Mapping[str, Make], arguments: Mapping[str, Any]
    ) -> ContextProvider:
        if name in self._members:
            if name not in self._made:
                self._made[name] = _own(name, self._members[name])
            return self._made[name]
        if name in known:
            return _shipped(name, known[name], arguments)
        own = [each for each, member in self._members.items() if _may_give(member)]
        meant = nearest(name, [*own, *known])
        remedy = f"Did you mean {meant!r}?" if meant else f"Define it in {PROVIDERS!r}."
        there = ", ".join([*own, *known])
        raise ContextProblem("W048", f"There is no provider {name!r}. There is: {there}.", remedy)


def _several(choices: Sequence[ChosenProvider]) -> ChosenProvider:
    """Several choices as one; each of them has its own time."""
    return ChosenProvider(Choices(*choices), timeout=math.inf, name="context")


def _may_give(member: object) -> bool:
    """Whether something looks like a provider, or like a class of them."""
    call: object = member.__call__ if isinstance(member, type) else member
    return adapter("functions").is_async(call)


def _own(name: str, member: Any) -> ContextProvider:
    """A provider of the workflow's code: an async function, or one of what has an async call."""
    provider: Any = _instance(name, member) if isinstance(member, type) else member
    if not callable(provider):
        raise ContextProblem("W051", f"Provider {name!r} cannot be called.", _WRITE_IT)
    if not adapter("functions").is_async(provider):
        raise ContextProblem("W051", f"Provider {name!r} is not async.", _WRITE_IT)
    try:
        inspect.signature(provider).bind(None)
    except TypeError as error:
        message = f"Provider {name!r} cannot be called with a request alone: {error}."
        raise ContextProblem("W051", message, _WRITE_IT) from error
    return cast(ContextProvider, provider)


def _instance(name: str, kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        message = f"Provider {name!r} cannot be made: {type(error).__name__}: {error_text(error)}."
        remedy = f"Make one in {PROVIDERS!r} and name that, or let it be made without arguments."
        raise ContextProblem("W051", message, remedy) from error


def _shipped(name: str, make: Make, arguments: Mapping[str, Any]) -> ContextProvider:
    """A provider that ships, made with what is declared."""
    known = inspect.signature(make).parameters
    for key in arguments:
        if key not in known:
            meant = nearest(key, known)
            remedy = f"Did you mean {meant!r}?" if meant else f"Known: {', '.join(known)}."
            raise ContextProblem("W051", f"Provider {name!r} knows no {key!r} in `config`.", remedy)
    try:
        return make(**arguments)
    except (UsageError, TypeError) as error:
        raise ContextProblem(
            "W051", f"Provider {name!r}: {error_text(error)}", "Correct its `config`."
        ) from error


def _check_type(model: type, module: str) -> None:
    """See that a type is called the same in every load of the code."""
    if type_name(model) == f"{module}.{model.__name__}":
        message = f"Type {model.__name__!r} has no name of its own, and its module none that lasts."
        remedy = "Give it the name that it has on the board: `@artifact_type(name=…)`."
        raise ContextProblem("W051", message, remedy)
