"""First values of variables, as an edited definition makes them of a record."""

from collections.abc import Mapping, Sequence
from typing import Any

from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextLoaded, InitialValue
from turnloom.variables.logic.resolution import (
    Gates,
    flags,
    lookups,
    origin_of,
    refitted,
    resolve_declared,
    resolve_file,
)
from turnloom.variables.spec import (
    DatabaseSource,
    Derived,
    FileSource,
    FromEnvironment,
    Static,
    VariableDefinition,
)
from turnloom.variables.spec.unknown import Unknown

_OPEN = Gates(False, False)

# Sources that a definition declares; other first values come from the run itself.
_DECLARED = frozenset({"static", "derived", "environment", "database", "file"})


def edited_values(
    loaded: LoadedWorkflow, recorded: ContextLoaded, closed: Sequence[str]
) -> ContextLoaded:
    """The first values of a run: from the edited declarations where these decide, from the record
    where it holds what they ask for, else unknown."""
    variables, data = loaded.workflow.variables, loaded.data
    known = {each.name: each for each in recorded.values}
    elsewhere = [each for each in recorded.values if each.source not in _DECLARED]
    built_in = [d.name for d, _ in flags(variables, _OPEN) if d.name not in variables.definitions]
    declared = (
        _value(definition, known.get(definition.name), data, closed)
        for definition in variables.definitions.values()
    )
    return ContextLoaded(
        (
            *elsewhere,
            *(known[name] for name in built_in if name in known),
            *(each for each in declared if each is not None),
        )
    )


def _value(
    definition: VariableDefinition,
    recorded: InitialValue | None,
    data: Mapping[str, Any],
    closed: Sequence[str],
) -> InitialValue | None:
    source = definition.source
    match source:
        case Static() | Derived():
            return resolve_declared(definition)
        case FileSource():
            return resolve_file(definition, data) if definition.name in data else recorded
        case FromEnvironment() | DatabaseSource():
            return _read(definition, source, recorded, closed)


def _read(
    definition: VariableDefinition,
    source: FromEnvironment | DatabaseSource,
    recorded: InitialValue | None,
    closed: Sequence[str],
) -> InitialValue | None:
    """A value that was read when the run began, if the same was read then."""
    kind = "environment" if isinstance(source, FromEnvironment) else "database"
    if any(_closes(reason, kind) for reason in closed):
        return None
    origin = origin_of(source)
    if recorded is None or recorded.origin != origin:
        value: Any = Unknown(definition.name, f"{origin} is not in the record")
        return InitialValue(definition.name, kind, value, origin=origin)
    if definition.secret:
        return recorded
    return refitted(definition, recorded)


def _closes(reason: str, kind: str) -> bool:
    return reason.startswith("ENVIRONMENT" if kind == "environment" else "CONTEXT_INCLUDE_SCHEMA")


def suppressed_names(loaded: LoadedWorkflow, reason: str) -> tuple[str, ...]:
    """The variables of an edited definition that a deployment does not have, for a reason."""
    variables = loaded.workflow.variables
    if _closes(reason, "environment"):
        return tuple(definition.name for definition, _ in flags(variables, _OPEN))
    if _closes(reason, "database"):
        return tuple(definition.name for definition, _ in lookups(variables, _OPEN))
    for each in loaded.suppressed:
        if each.reason == reason:
            return each.names
    return ()
