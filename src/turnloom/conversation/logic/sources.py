"""Context sources of a folder, and the variables that they read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from turnloom.agents.spec import (
    Agent,
    ContextChoice,
    HistoryChoice,
    ProviderChoice,
    RetrievalChoice,
    SourceChoice,
)
from turnloom.assembly.logic.checking import check_sources
from turnloom.assembly.logic.states import Anything, At
from turnloom.assembly.spec import (
    ChosenProvider,
    ContextRequest,
    ContextSlice,
    Message,
    RagCollection,
)
from turnloom.assembly.spec.formats import Budget, ContextFormat, places_in
from turnloom.assembly.spec.sources import (
    HistorySource,
    LiteralSource,
    ProviderSource,
    RetrievalSource,
    Share,
    Source,
    StateSource,
    Summarise,
    VariableSource,
)
from turnloom.conversation.logic.rosters import PlacedChoice, placed_contexts
from turnloom.conversation.logic.scope import Scope
from turnloom.errors import UsageError
from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_object
from turnloom.variables.spec import BAKED_IN, BASE


class SourceResolver(Protocol):
    """Resolves the names in declared sources; `at` is the path of a name in the declaration. A name
    that cannot be resolved gives None."""

    def collection(self, name: str, at: Path, /) -> type[RagCollection]:
        """The collection with this name."""
        ...

    def summarise(self, name: str, at: Path, /) -> Summarise | None:
        """The function that summarises messages."""
        ...

    def provider(self, choice: ProviderChoice, /) -> ChosenProvider | None:
        """The provider of items, or the filter that finds them."""
        ...


class PlaceholderResolver:
    """Resolves names to placeholders, so that a declaration is checked without its code."""

    def collection(self, name: str, at: Path, /) -> type[RagCollection]:
        """A placeholder collection."""
        return stand_in(name)

    def summarise(self, name: str, at: Path, /) -> Summarise | None:
        """A placeholder function."""
        return _in_short

    def provider(self, choice: ProviderChoice, /) -> ChosenProvider | None:
        """A placeholder provider."""
        return ChosenProvider(_nothing, name=choice.provider or "")


def stand_in(name: str) -> type[RagCollection]:
    """A placeholder for a collection.

    Raises:
        UsageError: the name is not valid for a collection.
    """
    return type(name, (RagCollection,), {"name": name})


def _in_short(messages: Sequence[Message]) -> str:
    return ""


async def _nothing(request: ContextRequest) -> ContextSlice:
    return ContextSlice([])


def make_source(choice: SourceChoice, behind: SourceResolver) -> Source | None:
    """Make the declared source; None if one of its names cannot be resolved.

    Raises:
        UsageError: the declaration is invalid.
    """
    share = {each.name: getattr(choice, each.name) for each in fields(Share)}
    if choice.state is not None:
        return StateSource(choice.state, **share)
    if choice.retrieval is not None:
        return _retrieval(choice.retrieval, behind, share)
    if choice.literal is not None:
        return LiteralSource(choice.literal, **share)
    if choice.variables:
        return VariableSource(choice.variables, **share)
    if choice.history is not None:
        return _history(choice.history, behind, share)
    chosen = behind.provider(choice)
    return ProviderSource(chosen, **share) if chosen else None


def _retrieval(
    choice: RetrievalChoice, behind: SourceResolver, share: Mapping[str, Any]
) -> RetrievalSource:
    collection = behind.collection(choice.collection, ("retrieval", "collection"))
    filters = {key: _filter(value) for key, value in choice.filters.items()}
    top_k, least = choice.top_k, choice.min_relevance
    return RetrievalSource(collection, choice.query, top_k, least, filters=filters, **share)


def _history(
    choice: HistoryChoice, behind: SourceResolver, share: Mapping[str, Any]
) -> HistorySource | None:
    if choice.summarise is None:
        return HistorySource(choice.last, choice.tokens, **share)
    summarise = behind.summarise(choice.summarise, ("history", "summarise"))
    if summarise is None:
        return None
    return HistorySource(choice.last, choice.tokens, summarise, **share)


def _filter(value: Json) -> Json | Callable[[Any], Any]:
    """The value of a filter: itself, or a reader of the state."""
    path = state_path(value)
    return value if path is None else At(path)


def state_path(value: Json) -> str | None:
    """The path into the state that a filter's value names, if any."""
    match as_object(value):
        case {"state": str(path), **others} if not others:
            return path
        case _:
            return None


_TYPES: Mapping[str | None, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Anything],
}


def check_contexts(scope: Scope, agents: Mapping[str, Agent]) -> None:
    """Report unknown names in sources, and sources that cannot work."""
    state = _state(scope) if scope.variables_known else None
    for agent in agents.values():
        for placed in placed_contexts(scope, agent):
            _check_context(scope, placed, state)


def _check_context(scope: Scope, placed: PlacedChoice, state: Mapping[str, Any] | None) -> None:
    choice = placed.choice
    made = [_made(scope, placed, *each) for each in enumerate(choice.sources)]
    for problem in check_sources(made, state, state, budget=budget_of(choice)):
        path = (*placed.path, "sources", problem.place, *problem.at)
        scope.report.add(placed.document, path, *problem[1:4])
    try:
        format_of(choice)
    except UsageError as error:
        scope.report.add(placed.document, (*placed.path, "format"), "W012", str(error))


def _made(scope: Scope, placed: PlacedChoice, place: int, choice: SourceChoice) -> Source | None:
    try:
        return make_source(choice, PlaceholderResolver())
    except UsageError as error:
        path = (*placed.path, "sources", place, choice.kind)
        scope.report.add(placed.document, path, "W012", str(error))
        return None


def budget_of(choice: ContextChoice) -> Budget | None:
    """The token budget of an agent's context."""
    return Budget(choice.budget.max_tokens) if choice.budget else None


def format_of(choice: ContextChoice) -> ContextFormat:
    """The format of an agent's context.

    Raises:
        UsageError: a setting has no effect, or names something unknown.
    """
    return ContextFormat(**choice.format.model_dump() if choice.format else {})


def _state(scope: Scope) -> dict[str, Any]:
    """The variables with the types of their values."""
    given = {**dict.fromkeys(BASE, str), **dict.fromkeys(BAKED_IN, bool)}
    own = {name: scope.definition(name) for name in sorted(scope.variable_names)}
    return given | {
        name: _TYPES.get(definition.type, Anything) if definition else Anything
        for name, definition in own.items()
    }


def read_in(choice: ContextChoice) -> Iterator[tuple[Path, str]]:
    """The variables that sources read, with the path of each in the declaration."""
    for place, source in enumerate(choice.sources):
        for at, name in _read(source):
            yield ("sources", place, *at), name.partition(".")[0]


def _read(source: SourceChoice) -> Iterator[tuple[Path, str]]:
    """Variables, and paths that start with a variable."""
    if source.state is not None:
        yield ("state",), source.state
    for number, name in enumerate(source.variables):
        yield ("variables", number), name
    if source.retrieval is not None:
        yield from ((("retrieval", "query"), name) for name in places_in(source.retrieval.query))
        for key, value in source.retrieval.filters.items():
            if (path := state_path(value)) is not None:
                yield ("retrieval", "filters", key), path
