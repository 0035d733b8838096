"""Sources as a folder declares them, made with whatever stands behind the names in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from turnloom.agents.spec import HistoryChoice, ProviderChoice, RetrievalChoice, SourceChoice
from turnloom.assembly.logic.states import At
from turnloom.assembly.spec import Chosen, ContextRequest, ContextSlice, Message, RagCollection
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
from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_object


class Behind(Protocol):
    """What stands behind the names that sources have; each name comes with where it stands in the
    declaration of its source. What cannot be had is nothing."""

    def collection(self, name: str, at: Path, /) -> type[RagCollection]:
        """The collection of a name."""
        ...

    def summarise(self, name: str, at: Path, /) -> Summarise | None:
        """The function that gives a text in the place of messages."""
        ...

    def provider(self, choice: ProviderChoice, /) -> Chosen | None:
        """Who is asked for items, or the filter that finds them."""
        ...


class Unloaded:
    """Stands for what no code is loaded for: with it, a declaration is checked by itself."""

    def collection(self, name: str, at: Path, /) -> type[RagCollection]:
        """Some collection of that name."""
        return stand_in(name)

    def summarise(self, name: str, at: Path, /) -> Summarise | None:
        """Some function of messages."""
        return _in_short

    def provider(self, choice: ProviderChoice, /) -> Chosen | None:
        """Some provider."""
        return Chosen(_nothing, name=choice.provider or "")


def stand_in(name: str) -> type[RagCollection]:
    """A collection of which only the name is known.

    Raises:
        UsageError: no collection can be called that.
    """
    return type(name, (RagCollection,), {"name": name})


def _in_short(messages: Sequence[Message]) -> str:
    return ""


async def _nothing(request: ContextRequest) -> ContextSlice:
    return ContextSlice([])


def make_source(choice: SourceChoice, behind: Behind) -> Source | None:
    """The source that is declared; nothing if something behind it cannot be had.

    Raises:
        UsageError: it could not work, whatever is behind it.
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
    choice: RetrievalChoice, behind: Behind, share: Mapping[str, Any]
) -> RetrievalSource:
    collection = behind.collection(choice.collection, ("retrieval", "collection"))
    filters = {key: _filter(value) for key, value in choice.filters.items()}
    top_k, least = choice.top_k, choice.min_relevance
    return RetrievalSource(collection, choice.query, top_k, least, filters, **share)


def _history(
    choice: HistoryChoice, behind: Behind, share: Mapping[str, Any]
) -> HistorySource | None:
    if choice.summarise is None:
        return HistorySource(choice.last, choice.tokens, **share)
    summarise = behind.summarise(choice.summarise, ("history", "summarise"))
    if summarise is None:
        return None
    return HistorySource(choice.last, choice.tokens, summarise, **share)


def _filter(value: Json) -> Json | Callable[[Any], Any]:
    """The value of a filter: itself, or what reads it from the state."""
    path = state_path(value)
    return value if path is None else At(path)


def state_path(value: Json) -> str | None:
    """The path that a value of a filter names, if it is one of the state."""
    match as_object(value):
        case {"state": str(path), **others} if not others:
            return path
        case _:
            return None
