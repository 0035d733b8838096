"""Context providers and sources of workflow folders."""

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

# Returns the file and line of the value under these keys.
Where = Callable[..., Place]

# Returns the chosen provider; reports a problem and returns None if it cannot be loaded.
Ask = Callable[[ProviderChoice, Where], ChosenProvider | None]

_DECLARE_IT = (
    f"Declare it in {PROVIDERS!r} with `class Name(RagCollection)`, or call "
    "`app.register_collection(Name, adapter)` before the run starts."
)


class Registered(NamedTuple):
    """Registered collections. `is_final` means that a run starts with them."""

    collections: Collections | None = None
    is_final: bool = True

    @property
    def names(self) -> list[str]:
        """Names of the collections."""
        return [*self.collections.names] if self.collections else []

    def find(self, name: str) -> type[RagCollection] | None:
        """Return the collection of a name, or None."""
        return self.collections.known(name) if self.collections else None


class Sources:
    """Sources that agents declare. Those that cannot be created are reported as problems of
    `code`."""

    def __init__(
        self, code: Code, members: Mapping[str, Any], registered: Registered, ask: Ask
    ) -> None:
        self.code = code
        self.ask = ask
        self._own = {each.name: each for each in members.values() if _is_collection(each)}
        self._registered = registered

    def assembly(self, placed: PlacedChoice) -> Assembly | None:
        """Assembly of an agent's context, or None if one of its sources cannot be created."""
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
        """Return a collection by name. An unknown one is reported at `place`."""
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
    """Resolves the names in the declaration of one source."""

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

# Providers that need no code. They are created with `config`.
SHIPPED: dict[str, Make] = {
    "correlation": DefaultCorrelationProvider,
    "transcript": TranscriptProvider,
}


async def nothing(request: ContextRequest) -> ContextSlice:
    """Return an empty slice: fallback of an optional provider."""
    return ContextSlice([])


# Names allowed as `fallback`.
FALLBACKS: dict[str, Make] = {**SHIPPED, "nothing": lambda: nothing}

_WRITE_IT = "Write `async def NAME(request: ContextRequest) -> ContextSlice`."


class ContextProblem(Exception):
    """A provider or type that cannot be used. Its arguments are code, message and remedy."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(code, message, remedy)


class FolderContexts:
    """Context providers of the agents in a folder, and artifact types of its code.

    Those that cannot be loaded are reported as problems of the code.
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
        """Context of each agent, without those that cannot be created."""
        if not self._loads:
            return {}
        made = {agent: self._context(declared) for agent, declared in self._declared.items()}
        return {agent: context for agent, context in made.items() if context is not None}

    def types(self, beside: TypeRegistry | None) -> TypeRegistry:
        """Artifact types of the code, added to `beside`."""
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
        """Line of a type's class in the code; line 1 if it is unknown."""
        file = self._code.file(self._members["__file__"])
        if model.__module__ != self._members["__name__"]:
            return file, 1
        try:
            return file, inspect.getsourcelines(model)[1]
        except OSError:  # the class was created by a call
            return file, 1

    def _context(self, declared: Sequence[PlacedChoice]) -> ChosenProvider | Assembly | None:
        if declared[0].choice.sources:
            return self._sources.assembly(declared[0])
        made = [self._choice(each.choice, each.place) for each in declared]
        choices = [each for each in made if each is not None]
        return _several(choices) if len(choices) > 1 else next(iter(choices), None)

    def _choice(self, choice: ProviderChoice, at: Where) -> ChosenProvider | None:
        """Return the chosen provider, or None if it cannot be loaded."""
        is_own = choice.provider in self._members
        arguments, config = ({}, choice.config) if is_own else (choice.config, {})
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
            provider, fallback, choice.timeout_s, config, name=choice.provider or ""
        )

    def _had(
        self, name: str, place: Place, known: Mapping[str, Make], arguments: Mapping[str, Any]
    ) -> ContextProvider | None:
        """Return a provider by name. If there is none, report it at `place` and return None."""
        if not self._members and name not in known and not nearest(name, known):
            self._code.function(PROVIDERS, name, place)  # reports the missing file
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
        raise ContextProblem("W048", f"Unknown provider {name!r}. Known: {there}.", remedy)


def _several(choices: Sequence[ChosenProvider]) -> ChosenProvider:
    """Combine several choices; each has its own timeout."""
    return ChosenProvider(Choices(*choices), timeout=math.inf, name="context")


def _may_give(member: object) -> bool:
    """Whether this looks like a provider or a class of providers."""
    call: object = member.__call__ if isinstance(member, type) else member
    return adapter("functions").is_async(call)


def _own(name: str, member: Any) -> ContextProvider:
    """Return a provider of the workflow's code: an async function, or an object with an async
    `__call__`."""
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
        message = (
            f"Provider {name!r} cannot be created: {type(error).__name__}: {error_text(error)}."
        )
        remedy = f"Create an instance in {PROVIDERS!r} and name it, or require no arguments."
        raise ContextProblem("W051", message, remedy) from error


def _shipped(name: str, make: Make, arguments: Mapping[str, Any]) -> ContextProvider:
    """Create a built-in provider with its declared configuration."""
    known = inspect.signature(make).parameters
    for key in arguments:
        if key not in known:
            meant = nearest(key, known)
            remedy = f"Did you mean {meant!r}?" if meant else f"Known: {', '.join(known)}."
            raise ContextProblem("W051", f"Provider {name!r} has no option {key!r}.", remedy)
    try:
        return make(**arguments)
    except (UsageError, TypeError) as error:
        raise ContextProblem(
            "W051", f"Provider {name!r}: {error_text(error)}", "Correct its `config`."
        ) from error


def _check_type(model: type, module: str) -> None:
    """Refuse a type with a name that changes with each load of the code."""
    if type_name(model) == f"{module}.{model.__name__}":
        message = (
            f"Type {model.__name__!r} has no stable name: its module is renamed with each load."
        )
        remedy = "Name it: `@artifact_type(name=…)`."
        raise ContextProblem("W051", message, remedy)
