"""From the document that declares variables to checked ones, or to every problem it has."""

from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from weft.kernel.documents import Document, Path
from weft.kernel.models import Entry, Report
from weft.kernel.values import Json, as_object, nearest
from weft.variables.logic.derivation import matcher
from weft.variables.logic.types import misfit
from weft.variables.spec import (
    BAKED_IN,
    BASE,
    AgentText,
    Definition,
    Derived,
    Exposure,
    FromEnvironment,
    Static,
    Variables,
)

_KEYS = ("definitions", "agents")


class CheckedVariables(NamedTuple):
    """What is valid, and every name that was declared, valid or not, if they can all be known."""

    variables: Variables
    names: frozenset[str]
    complete: bool = True


def check_variables(
    report: Report, document: Document | None, agents: Set[str]
) -> CheckedVariables:
    """The variables of a workflow; problems go to the report. No agents: they are not known."""
    if document is None:
        return CheckedVariables(Variables(), frozenset())
    root = report.part(document, "context_variables")
    value = as_object(root.value)
    if value is None:
        remedy = f"Write {' and '.join(f'`{key}`' for key in _KEYS)}."
        report.add(document, root.path, "W012", "Context variables must be an object.", remedy)
        return CheckedVariables(Variables(), frozenset(), complete=False)
    for key in value:
        if key not in _KEYS:
            report.unknown(document, (*root.path, key), _KEYS)
    declared = report.named(document, _under(root, value, "definitions"), "Variable")
    definitions = {
        name: definition
        for name, entry in declared.entries.items()
        if (definition := _definition(report, document, entry, name, agents)) is not None
    }
    names = frozenset(declared.entries)
    views = report.named(document, _under(root, value, "agents"), "Agent")
    exposures = {
        name: exposure
        for name, entry in views.entries.items()
        if (exposure := _exposure(report, document, entry, agents)) is not None
    }
    if declared.complete:
        _check_exposed(report, document, exposures.values(), views.entries, names)
    variables = Variables(definitions=definitions, exposures=exposures)
    return CheckedVariables(variables, names, declared.complete)


def _under(root: Entry, value: dict[str, Any], key: str) -> Entry:
    return Entry((*root.path, key), value.get(key))


def _definition(
    report: Report, document: Document, entry: Entry, name: str, agents: Set[str]
) -> Definition | None:
    if name in BASE:
        report.add(
            document,
            entry.path,
            "W026",
            f"{name!r} is an id of the run and cannot be redefined.",
            "Choose another name.",
        )
        return None
    definition = report.model(document, entry, Definition)
    if definition is not None:
        _check_source(report, document, (*entry.path, "source"), definition, agents)
    return definition


def _check_source(
    report: Report, document: Document, path: Path, definition: Definition, agents: Set[str]
) -> None:
    if definition.type is None and not isinstance(definition.source, Static):
        report.add(
            document,
            path[:-1],
            "W011",
            f"Variable {definition.name!r} has no `type`.",
            "Only static variables may leave it out.",
        )
    untold = definition.model_copy(update={"enum": None})
    for number, allowed in enumerate(definition.enum or ()):
        _check_value(report, document, (*path[:-1], "enum", number), untold, allowed)
    match definition.source:
        case Static(value=value):
            _check_value(report, document, (*path, "value"), definition, value)
        case FromEnvironment(default=default):
            _check_value(report, document, (*path, "default"), definition, default)
        case Derived(default=default, triggers=triggers):
            _check_value(report, document, (*path, "default"), definition, default)
            for number, trigger in enumerate(triggers):
                where = (*path, "triggers", number)
                _check_trigger(report, document, where, definition, trigger, agents)


def _check_value(
    report: Report, document: Document, path: Path, definition: Definition, value: Json
) -> None:
    if problem := misfit(definition, value):
        report.add(document, path, "W024", f"{problem}.", "Change the value or the type.")


def _check_trigger(
    report: Report,
    document: Document,
    path: Path,
    definition: Definition,
    trigger: AgentText,
    agents: Set[str],
) -> None:
    if trigger.agent not in agents and agents:
        hint = nearest(trigger.agent, sorted(agents))
        remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(sorted(agents))}."
        message = f"Trigger listens to agent {trigger.agent!r}, which is not declared."
        report.add(document, (*path, "agent"), "W020", message, remedy)
    if problem := misfit(definition, trigger.value):
        remedy = "Say which `value` the trigger sets."
        report.add(document, (*path, "value"), "W024", f"{problem}.", remedy)
    try:
        matcher(trigger)
    except ValueError as error:
        report.add(document, (*path, "match", "regex"), "W025", str(error), "Correct it.")


def _exposure(
    report: Report, document: Document, entry: Entry, agents: Set[str]
) -> Exposure | None:
    exposure = report.model(document, entry, Exposure)
    if exposure is not None and exposure.name not in agents and agents:
        hint = nearest(exposure.name, sorted(agents))
        remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(sorted(agents))}."
        message = f"Variables are shown to agent {exposure.name!r}, which is not declared."
        report.add(document, entry.path, "W020", message, remedy)
    return exposure


def _check_exposed(
    report: Report,
    document: Document,
    exposures: Iterable[Exposure],
    places: Mapping[str, Entry],
    declared: Set[str],
) -> None:
    """Note what agents are shown and nobody declares."""
    known = sorted({*declared, *BASE, *BAKED_IN})
    for exposure in exposures:
        for number, name in enumerate(exposure.variables):
            if name not in known:
                hint = nearest(name, known)
                remedy = f"Did you mean {hint!r}?" if hint else "Add it under `definitions`."
                message = f"Agent {exposure.name!r} is shown {name!r}, which is not declared."
                path = (*places[exposure.name].path, "variables", number)
                report.add(document, path, "W021", message, remedy)
