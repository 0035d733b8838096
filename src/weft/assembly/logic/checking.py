"""Whether sources can give what they name: all problems at once."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from weft.assembly.logic.descriptions import origin_of
from weft.assembly.logic.retrieval import read_filters
from weft.assembly.logic.states import type_at
from weft.assembly.spec.retrieval import RagCollection
from weft.assembly.spec.sources import (
    RetrievalSource,
    Source,
    StateSource,
    VariableSource,
    check_path,
)
from weft.assembly.spec.templates import places_in
from weft.errors import UsageError
from weft.kernel.values import nearest, preview


def as_sources(given: Iterable[object]) -> tuple[Source, ...]:
    """What was declared as sources.

    Raises:
        UsageError: something is none.
    """
    found: list[Source] = []
    for place, each in enumerate(given):
        if not isinstance(each, Source):
            raise UsageError(
                f"context[{place}] is {preview(each)}, which is no source. Write from_state(…), "
                "from_retrieval(…), from_literal(…), from_variables(…), from_provider(…) or "
                "from_history(…)."
            )
        found.append(each)
    return tuple(found)


class Trouble(NamedTuple):
    """A problem with one source, ready to be numbered: what it is about, what it is, what to do."""

    place: int
    about: Literal["state", "template", "variable", "collection", "filter"]
    message: str
    remedy: str


class _Known(NamedTuple):
    """What sources may name; nothing is said about what is not known."""

    state: Any
    variables: Collection[str] | None
    collections: Collection[type[RagCollection]] | None


def check_sources(
    sources: Sequence[Source],
    state_type: Any = None,
    variables: Collection[str] | None = None,
    collections: Collection[type[RagCollection]] | None = None,
) -> list[Trouble]:
    """Every problem that sources have with a type of state, with the variables that are declared
    and with the collections that are registered; what is left out is not looked at."""
    known = _Known(state_type, variables, collections)
    return [
        trouble
        for place, source in enumerate(sources)
        for trouble in _troubles(place, source, known)
    ]


def _troubles(place: int, source: Source, known: _Known) -> Iterator[Trouble]:
    match source:
        case StateSource(at=str(path)) if known.state is not None:
            found = type_at(known.state, check_path(path))
            if found.problem:
                yield _told(place, source, "state", found.problem, found.remedy)
        case VariableSource(names=names) if known.variables is not None:
            for name in names:
                if name not in known.variables:
                    yield _undeclared(place, source, name, known.variables)
        case RetrievalSource():
            yield from _search_troubles(place, source, known)
        case _:
            pass


def _search_troubles(place: int, source: RetrievalSource, known: _Known) -> Iterator[Trouble]:
    if known.collections is not None and source.collection not in known.collections:
        name = source.collection.__name__
        yield _told(
            place,
            source,
            "collection",
            f"collection {source.collection.name!r} is not registered.",
            f"Register it with `app.register({name}, adapter)` before the run starts.",
        )
    constants = {key: each for key, each in source.filters.items() if not callable(each)}
    try:
        read_filters(constants)
    except UsageError as error:
        message, _, remedy = str(error).partition(". ")
        yield _told(place, source, "filter", f"{message}.", remedy)
    if isinstance(source.query, str):
        for name in places_in(source.query):
            yield from _place_troubles(place, source, name, known)


def _place_troubles(place: int, source: Source, name: str, known: _Known) -> Iterator[Trouble]:
    """A place of a template is for a variable, or else for a field of the state."""
    if known.variables is not None and name in known.variables:
        return
    if known.state is not None:
        found = type_at(known.state, name.split("."))
        if found.problem:
            message = f"the query has a place for {name!r}: {found.problem}"
            yield _told(place, source, "template", message, found.remedy)
    elif known.variables is not None:
        yield _undeclared(place, source, name, known.variables)


def _undeclared(place: int, source: Source, name: str, declared: Collection[str]) -> Trouble:
    near = nearest(name, list(declared))
    remedy = f"Did you mean {near!r}?" if near else f"Declared: {', '.join(declared) or 'nothing'}."
    about = "variable" if isinstance(source, VariableSource) else "template"
    return _told(place, source, about, f"variable {name!r} is not declared.", remedy)


def _told(
    place: int,
    source: Source,
    about: Literal["state", "template", "variable", "collection", "filter"],
    message: str,
    remedy: str,
) -> Trouble:
    return Trouble(place, about, f"{origin_of(place, source)}: {message}", remedy)
