"""What the sources of agents read of a conversation: its variables, which are its state."""

from collections.abc import Iterator, Mapping
from typing import Any

from turnloom.agents.spec import Agent, ContextChoice, SourceChoice
from turnloom.assembly.logic.checking import check_sources
from turnloom.assembly.logic.states import Anything
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.sources import Source
from turnloom.assembly.spec.templates import places_in
from turnloom.conversation.logic.rosters import PlacedChoice, placed_contexts
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.logic.sources import Unloaded, make_source, state_path
from turnloom.errors import UsageError
from turnloom.kernel.documents import Path
from turnloom.variables.spec import BAKED_IN, BASE

_TYPES: Mapping[str | None, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Anything],
}


def check_contexts(scope: Scope, agents: Mapping[str, Agent]) -> None:
    """Note what sources name that there is not, and what of them could not work."""
    state = _state(scope) if scope.variables_known else None
    for agent in agents.values():
        for placed in placed_contexts(scope, agent):
            _check_context(scope, placed, state)


def _check_context(scope: Scope, placed: PlacedChoice, state: Mapping[str, Any] | None) -> None:
    choice = placed.choice
    made = [_made(scope, placed, *each) for each in enumerate(choice.sources)]
    for trouble in check_sources(made, state, state, budget=budget_of(choice)):
        path = (*placed.path, "sources", trouble.place, *trouble.at)
        scope.report.add(placed.document, path, *trouble[1:4])
    try:
        format_of(choice)
    except UsageError as error:
        scope.report.add(placed.document, (*placed.path, "format"), "W012", str(error))


def _made(scope: Scope, placed: PlacedChoice, place: int, choice: SourceChoice) -> Source | None:
    try:
        return make_source(choice, Unloaded())
    except UsageError as error:
        path = (*placed.path, "sources", place, choice.kind)
        scope.report.add(placed.document, path, "W012", str(error))
        return None


def budget_of(choice: ContextChoice) -> Budget | None:
    """How many tokens an agent's context may have."""
    return Budget(choice.budget.max_tokens) if choice.budget else None


def format_of(choice: ContextChoice) -> ContextFormat:
    """How an agent's context is written.

    Raises:
        UsageError: something that is said of it could have no effect, or names what there is not.
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
    """The variables that sources read, and where in their declaration each stands."""
    for place, source in enumerate(choice.sources):
        for at, name in _read(source):
            yield ("sources", place, *at), name.partition(".")[0]


def _read(source: SourceChoice) -> Iterator[tuple[Path, str]]:
    """Variables, and paths that begin with one."""
    if source.state is not None:
        yield ("state",), source.state
    for number, name in enumerate(source.variables):
        yield ("variables", number), name
    if source.retrieval is not None:
        yield from ((("retrieval", "query"), name) for name in places_in(source.retrieval.query))
        for key, value in source.retrieval.filters.items():
            if (path := state_path(value)) is not None:
                yield ("retrieval", "filters", key), path
