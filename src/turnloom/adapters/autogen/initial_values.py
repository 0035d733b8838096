"""Initial values of the variables that a group chat lacks, as in a run."""

from collections.abc import Mapping
from typing import NamedTuple

from autogen.agentchat.group.context_variables import ContextVariables

from turnloom.adapters.autogen.recorders import ChatRunStore
from turnloom.kernel.values import Json
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextSuppressed
from turnloom.variables.events import InitialValue as First
from turnloom.variables.logic.resolution import Gates, Readings, ResolvedContext, resolve
from turnloom.variables.spec import (
    DatabaseSource,
    Derived,
    FileSource,
    FromEnvironment,
    Static,
    VariableDefinition,
    Variables,
)

# The readings for variables without external sources.
NO_READINGS = Readings(Gates(False, False), {}, {})


class InitialValues(NamedTuple):
    """Initial values by name, the facts that record them, and suppressed variables."""

    values: Mapping[str, Json]
    facts: Mapping[str, First]
    suppressed: tuple[ContextSuppressed, ...] = ()


def missing_variables(
    context: ContextVariables, variables: Variables
) -> dict[str, VariableDefinition]:
    """The declared variables that have no value in a chat."""
    return {name: each for name, each in variables.definitions.items() if name not in context}


def has_external_source(definition: VariableDefinition) -> bool:
    """Whether the initial value comes from the environment or a database."""
    return isinstance(definition.source, FromEnvironment | DatabaseSource)


def initial_values(
    context: ContextVariables,
    workflow: LoadedWorkflow,
    variables: Variables,
    records: ChatRunStore | None,
) -> InitialValues:
    """The initial values of the variables that a chat lacks.

    Raises:
        MissingContext: a required variable has no value.
    """
    wanted = Variables(definitions=missing_variables(context, variables))
    resolved = _resolved(wanted, workflow, records)
    facts = {each.name: each for each in resolved.loaded.values if each.name in wanted.definitions}
    values = {name: resolved.secrets.get(name, each.value) for name, each in facts.items()}
    return InitialValues(values, facts, resolved.suppressed)


def _resolved(
    wanted: Variables, workflow: LoadedWorkflow, records: ChatRunStore | None
) -> ResolvedContext:
    if records is not None and any(map(has_external_source, wanted.definitions.values())):
        return records.load(workflow, wanted)
    return resolve(wanted, {}, NO_READINGS._replace(files=workflow.data))


def declared_value(definition: VariableDefinition) -> Json:
    """The value in a declaration, without reading any source."""
    match definition.source:
        case Static(value=value):
            return value
        case FileSource():
            return None
        case (
            FromEnvironment(default=value) | DatabaseSource(default=value) | Derived(default=value)
        ):
            return value
