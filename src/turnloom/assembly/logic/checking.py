"""Checks of sources; reports all problems at once."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from turnloom.assembly.logic.descriptions import origin_of
from turnloom.assembly.logic.retrieval import read_filters
from turnloom.assembly.logic.states import At, type_at
from turnloom.assembly.spec.formats import Budget, places_in
from turnloom.assembly.spec.retrieval import RagCollection
from turnloom.assembly.spec.sources import (
    RetrievalSource,
    Source,
    StateSource,
    VariableSource,
    check_path,
)
from turnloom.errors import UsageError
from turnloom.kernel.documents import Path
from turnloom.kernel.values import nearest, preview


def as_sources(given: Iterable[object]) -> tuple[Source, ...]:
    """The declared sources.

    Raises:
        UsageError: an entry is not a source.
    """
    found: list[Source] = []
    for place, each in enumerate(given):
        if not isinstance(each, Source):
            raise UsageError(
                f"context[{place}] must be a source, not {preview(each)}. Write from_state(…), "
                "from_retrieval(…), from_literal(…), from_variables(…), from_provider(…) or "
                "from_history(…)."
            )
        found.append(each)
    return tuple(found)


class SourceProblem(NamedTuple):
    """A problem of one source: its index, code, message and remedy, and the path inside the
    declaration of the source."""

    place: int
    code: str
    message: str
    remedy: str
    at: Path


class _Problem(NamedTuple):
    """A message and its remedy."""

    message: str
    remedy: str


class _Known(NamedTuple):
    """The names that sources may use; None disables a check."""

    state: Any
    variables: Collection[str] | None
    collections: Collection[type[RagCollection]] | None


def check_sources(
    sources: Sequence[Source | None],
    state_type: Any = None,
    variables: Collection[str] | None = None,
    collections: Collection[type[RagCollection]] | None = None,
    budget: Budget | None = None,
) -> list[SourceProblem]:
    """All problems of sources with a state type, the declared variables, the registered collections
    and a budget; omitted ones are not checked.

    If the state is not an object of a class, its type is a mapping of names to types. A source that
    could not be built is None and keeps its index.
    """
    known = _Known(state_type, variables, collections)
    found = [
        problem
        for place, source in enumerate(sources)
        if source is not None
        for problem in _problems(place, source, known)
    ]
    return [*found, *_budget_problems(sources, budget)] if budget else found


def _problems(place: int, source: Source, known: _Known) -> Iterator[SourceProblem]:
    match source:
        case StateSource(at=str(path)) if known.state is not None:
            for problem in _missing(known.state, check_path(path)):
                yield _problem_at(place, source, "W055", problem, at=("state",))
        case VariableSource(names=names) if known.variables is not None:
            for number, name in enumerate(names):
                if name not in known.variables:
                    problem = _undeclared(name, known.variables)
                    yield _problem_at(place, source, "W021", problem, at=("variables", number))
        case RetrievalSource():
            yield from _search_problems(place, source, known)
        case _:
            pass


def _search_problems(place: int, source: RetrievalSource, known: _Known) -> Iterator[SourceProblem]:
    if known.collections is not None and source.collection not in known.collections:
        problem = _Problem(
            f"collection {source.collection.name!r} is not registered.",
            f"Register it with `app.register_collection({source.collection.__name__}, adapter)` "
            "before the run starts.",
        )
        yield _problem_at(place, source, "W057", problem, at=("retrieval", "collection"))
    for key, value in source.filters.items():
        for code, problem in _filter_problems(key, value, known):
            yield _problem_at(place, source, code, problem, at=("retrieval", "filters", key))
    if isinstance(source.query, str):
        for name in places_in(source.query):
            yield from _place_problems(place, source, name, known)


def _filter_problems(key: str, value: Any, known: _Known) -> Iterator[tuple[str, _Problem]]:
    if isinstance(value, At) and known.state is not None:
        for message, remedy in _missing(known.state, value.path.split(".")):
            yield "W055", _Problem(f"filter {key!r}: {message}", remedy)
    elif not callable(value):
        try:
            read_filters({key: value})
        except UsageError as error:
            message, _, remedy = str(error).partition(". ")
            yield "W058", _Problem(f"{message.removesuffix('.')}.", remedy)


def _place_problems(
    place: int, source: Source, name: str, known: _Known
) -> Iterator[SourceProblem]:
    """A placeholder names a variable, or else a field of the state."""
    at = ("retrieval", "query")
    if known.variables is not None and name in known.variables:
        return
    if known.state is not None:
        for message, remedy in _missing(known.state, name.split(".")):
            problem = _Problem(f"the query has the placeholder {name!r}: {message}", remedy)
            yield _problem_at(place, source, "W056", problem, at=at)
    elif known.variables is not None:
        yield _problem_at(place, source, "W056", _undeclared(name, known.variables), at=at)


def _budget_problems(sources: Sequence[Source | None], budget: Budget) -> Iterator[SourceProblem]:
    """The first source whose minimum exceeds the budget, together with those before it."""
    kept = 0
    for place, source in enumerate(sources):
        if source is None or (kept := kept + source.min_tokens) <= budget.max_tokens:
            continue
        problem = _Problem(
            f"`min_tokens` add up to {kept} so far, but the budget is {budget.max_tokens}.",
            "Lower `min_tokens`, or raise `max_tokens`.",
        )
        yield _problem_at(place, source, "W059", problem, at=("min_tokens",))
        return


def _missing(state: Any, names: Sequence[str]) -> Iterator[_Problem]:
    """Why the type at this path of a state is unknown."""
    found = type_at(state, names)
    if found.problem:
        yield _Problem(found.problem, found.remedy)


def _undeclared(name: str, declared: Collection[str]) -> _Problem:
    near = nearest(name, list(declared))
    remedy = f"Did you mean {near!r}?" if near else f"Declared: {', '.join(declared) or 'nothing'}."
    return _Problem(f"variable {name!r} is not declared.", remedy)


def _problem_at(
    place: int, source: Source, code: str, problem: _Problem, at: Path
) -> SourceProblem:
    message = f"{origin_of(place, source)}: {problem.message}"
    return SourceProblem(place, code, message, problem.remedy, at=at)
