"""What a group chat begins with: the first values of the variables that it lacks, as in a run."""

from collections.abc import Mapping
from typing import NamedTuple

from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.adapters.autogen.diaries import ChatRunStore
from turnloom.kernel.values import Json
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextSuppressed
from turnloom.variables.events import InitialValue as First
from turnloom.variables.logic.resolution import Gates, Readings, Resolved, resolve
from turnloom.variables.spec import (
    DatabaseSource,
    Derived,
    FromEnvironment,
    Static,
    VariableDefinition,
    Variables,
)

# What the sources say that look at nothing outside.
UNREAD = Readings(Gates(False, False), {}, {})


class Beginning(NamedTuple):
    """First values: open ones by name, as they are told, and what this deployment leaves out."""

    values: Mapping[str, Json]
    told: Mapping[str, First]
    suppressed: tuple[ContextSuppressed, ...] = ()


def lacking(context: ContextVariables, variables: Variables) -> dict[str, VariableDefinition]:
    """The declared variables that a chat has no values of."""
    return {name: each for name, each in variables.definitions.items() if name not in context}


def looks_outside(definition: VariableDefinition) -> bool:
    """Whether the first value of a variable is in the environment or in a database."""
    return isinstance(definition.source, FromEnvironment | DatabaseSource)


def begin(
    context: ContextVariables,
    workflow: LoadedWorkflow,
    variables: Variables,
    records: ChatRunStore | None,
) -> Beginning:
    """The first values of what a chat lacks.

    Raises:
        MissingContext: a variable that is required has none.
    """
    wanted = Variables(definitions=lacking(context, variables))
    resolved = _resolved(wanted, workflow, records)
    told = {each.name: each for each in resolved.loaded.values if each.name in wanted.definitions}
    values = {name: resolved.secrets.get(name, each.value) for name, each in told.items()}
    return Beginning(values, told, resolved.suppressed)


def _resolved(
    wanted: Variables, workflow: LoadedWorkflow, records: ChatRunStore | None
) -> Resolved:
    if records is not None and any(map(looks_outside, wanted.definitions.values())):
        return records.load(workflow, wanted)
    return resolve(wanted, {}, UNREAD)


def declared_value(definition: VariableDefinition) -> Json:
    """The value that a declaration gives without looking at the world."""
    match definition.source:
        case Static(value=value):
            return value
        case (
            FromEnvironment(default=value) | DatabaseSource(default=value) | Derived(default=value)
        ):
            return value
