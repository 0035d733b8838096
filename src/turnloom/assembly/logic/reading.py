"""Reading sources: values of the state, and what is to be looked for."""

from collections.abc import Mapping
from typing import Any

from turnloom.assembly.logic.retrieval import read_filters
from turnloom.assembly.logic.searched import Sought
from turnloom.assembly.logic.states import text_of, value_at
from turnloom.assembly.spec.sources import Read, RetrievalSource, StateSource
from turnloom.assembly.spec.templates import fill
from turnloom.errors import ContextUnavailable
from turnloom.kernel.names import qualified
from turnloom.kernel.values import Json, said
from turnloom.variables.logic.exposure import Values


def read_state(source: StateSource, origin: str, state: Any) -> str:
    """The value that a source names, as text.

    Raises:
        ContextUnavailable: it cannot be read.
    """
    at = source.at
    value = value_at(state, at.split(".")) if isinstance(at, str) else _called(at, origin, state)
    return value if value.__class__ is str else text_of(value)


def read_sought(source: RetrievalSource, origin: str, state: Any, values: Values) -> Sought | None:
    """What a source looks for at this moment; nothing if its query is blank.

    Raises:
        ContextUnavailable: the query or a filter cannot be read.
        UsageError: a filter cannot be looked for.
    """
    if isinstance(source.query, str):
        query = fill(source.query, lambda place: _place(place, state, values))
    else:
        query = text_of(_called(source.query, origin, state))
    if not query.strip():
        return None
    filters: Mapping[str, Json] = {
        key: _called(value, origin, state) if callable(value) else value
        for key, value in source.filters.items()
    }
    read_filters(filters)
    return Sought(source.collection, query, source.top_k, source.min_relevance, filters)


def _place(name: str, state: Any, values: Values) -> str:
    """What a place of a template says: the value of a variable, or else of the state."""
    if name in values.now or name in values.absent or name in values.definitions:
        return text_of(values.now.get(name))
    return text_of(value_at(state, name.split(".")))


def _called(read: Read, origin: str, state: Any) -> Any:
    try:
        return read(state)
    except Exception as error:
        raise ContextUnavailable(
            f"{origin}: {qualified(read)} raised {type(error).__name__}: {said(error)}. "
            "Let it take every state."
        ) from error
