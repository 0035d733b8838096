"""Checks of the context variables file."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from turnloom.errors import UsageError
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry, Report, readable
from turnloom.kernel.values import Json, as_array, as_object, nearest, type_names
from turnloom.variables.logic.cycles import cycle_of
from turnloom.variables.logic.exposure import names_of, place_in
from turnloom.variables.logic.matching import ENDING, ends_chats
from turnloom.variables.logic.migration import refusal
from turnloom.variables.logic.migration.layout import FOREIGN
from turnloom.variables.logic.options import faults
from turnloom.variables.logic.paths import steps
from turnloom.variables.logic.triggers import TRIGGER_LOADERS, definition_model
from turnloom.variables.logic.types import misfit
from turnloom.variables.spec import (
    BAKED_IN,
    BASE,
    RUN_STATUS,
    AgentTextTrigger,
    ContextChange,
    DatabaseSource,
    Derived,
    Exposure,
    FileSource,
    FromEnvironment,
    Static,
    Trigger,
    UiResponse,
    VariableDefinition,
    Variables,
)

# The message of a variable without a name.
NAMELESS = "Variable has no `name`."

_OUTER = "context_variables"
_KEYS = ("definitions", "agents")


# What MozaiksAI sets from a whole database, without a declaration.
_SCHEMA_NAMES = (
    *("schema_overview", "database_schema_available", "database_schema_db"),
    "collections_first_docs_full",
)
_OF_A_SCHEMA = (
    "Only MozaiksAI sets it. Declare the fields that agents need as `database` variables."
)


class CheckedVariables(NamedTuple):
    """The valid variables, all declared names, whether those are complete, and the locations of
    variables and exposures."""

    variables: Variables
    names: frozenset[str]
    complete: bool = True
    declared: Mapping[str, DocumentEntry] = MappingProxyType({})
    views: Mapping[str, DocumentEntry] = MappingProxyType({})


class KnownNames(NamedTuple):
    """The agents and tools that a workflow declares; empty or None if unknown."""

    agents: Set[str]
    tools: Collection[str] | None = None


def check_variables(
    report: Report, document: DeclarationFile | None, known: KnownNames
) -> CheckedVariables:
    """Check the variables of a workflow; problems go to the report."""
    agents = known.agents
    if document is None:
        return CheckedVariables(Variables(), frozenset())
    root = report.part(document, _OUTER)
    value = as_object(root.value)
    if value is None:
        remedy = f"Write {' and '.join(f'`{key}`' for key in _KEYS)}."
        report.add(
            document, root.path, "W012", "Context variables must be an object.", remedy=remedy
        )
        return CheckedVariables(Variables(), frozenset(), complete=False)
    for key in value:
        if key not in _KEYS:
            report.unknown(document, (*root.path, key), _KEYS)
    declared = report.named(document, _defined(root, value), "Variable")
    definitions = {
        name: definition
        for name, entry in declared.entries.items()
        if (definition := _definition(report, document, entry, name, known=known)) is not None
    }
    names = frozenset(declared.entries)
    listed = _with_names(_under(root, value, "agents"), ("agent_name", "agent"))
    views = report.named(document, listed, "Agent")
    exposures = {
        name: exposure
        for name, entry in views.entries.items()
        if (exposure := _exposure(report, document, entry, agents)) is not None
    }
    shown = {name for each in exposures.values() for name in each.variables}
    nameless = len(as_array(value.get("definitions")) or ()) - len(declared.entries)
    # Names that outnumber the entries without one cannot all be theirs.
    complete = declared.complete or len(shown - {*names, *BAKED_IN, *BASE}) > nameless > 0
    if complete:
        _check_exposed(report, document, exposures.values(), views.entries, declared=names)
        _check_heard(report, document, definitions, declared.entries, declared=names)
    variables = Variables(definitions=definitions, exposures=exposures)
    return CheckedVariables(variables, names, complete, declared.entries, views=views.entries)


def _defined(root: DocumentEntry, value: dict[str, Any]) -> DocumentEntry:
    """The definitions of a file; those of a list may have a `key` instead of a `name`."""
    definitions = _under(root, value, "definitions")
    return definitions if as_object(definitions.value) else _with_names(definitions, ("key",))


def _with_names(entries: DocumentEntry, words: Sequence[str]) -> DocumentEntry:
    """Entries with a `name`, also if they use another word for it."""
    path, items, mapping = entries.path, as_array(entries.value), as_object(entries.value)
    if items is not None:
        return DocumentEntry(path, [_with_name(each, words) for each in items])
    if mapping is not None:
        named = {key: _with_name(each, words) for key, each in mapping.items()}
        return DocumentEntry(path, named)
    return entries


def _with_name(entry: Json, words: Sequence[str]) -> Json:
    value = as_object(entry)
    key = next((key for key in words if key in (value or {})), None)
    if value is None or key is None or "name" in value:
        return entry
    return {("name" if each == key else each): said for each, said in value.items()}


def _under(root: DocumentEntry, value: dict[str, Any], key: str) -> DocumentEntry:
    return DocumentEntry((*root.path, key), value.get(key))


def _definition(
    report: Report, document: DeclarationFile, entry: DocumentEntry, name: str, known: KnownNames
) -> VariableDefinition | None:
    if name in BASE or name == RUN_STATUS:
        what = "the status of the run" if name == RUN_STATUS else "an id of the run"
        message = f"{name!r} is {what} and cannot be redefined."
        report.add(document, entry.path, "W026", message, remedy="Choose another name.")
        return None
    entry = report.foreign(document, entry, FOREIGN)
    if (refused := refusal(name, entry.value)) is not None:
        where = (*entry.path, "source", "type")
        report.add(document, where, "W016", f"{name!r}: {refused.why}", remedy=refused.instead)
        return None
    definition = report.model(document, entry, definition_model())
    if definition is not None:
        for fault in faults(definition):
            where = (*entry.path, fault.key)
            report.add(document, where, "W029", fault.why, remedy=fault.remedy)
        _check_source(report, document, (*entry.path, "source"), definition, known=known)
    else:
        _check_unread(report, document, entry, known)
    return definition


def _check_unread(
    report: Report, document: DeclarationFile, entry: DocumentEntry, known: KnownNames
) -> None:
    """Check what can be read of a definition that is invalid: all but its faulty keys, or each of
    its triggers."""
    rest, where = readable(entry.value, definition_model()), (*entry.path, "source")
    if rest is not None and rest.type is not None:
        _check_source(report, document, where, rest, known=known)
        return
    value = as_object(entry.value) or {}
    source = as_object(value.get("source")) or {}
    for number, trigger in enumerate(as_array(source.get("triggers")) or ()):
        alone = {**value, "source": {"type": "derived", "triggers": [trigger]}}
        read = readable(alone, definition_model())
        at = (*where, "triggers", number)
        if read is None or not isinstance(read.source, Derived):
            _check_named(report, document, DocumentEntry(at, trigger), known)
        else:
            _check_trigger(report, document, at, read, trigger=read.source.triggers[0], known=known)


def _check_named(
    report: Report, document: DeclarationFile, trigger: DocumentEntry, known: KnownNames
) -> None:
    """Check the agent and the tool that a trigger names."""
    for key, check in (("agent", _check_agent), ("tool", _check_tool)):
        if isinstance(name := (as_object(trigger.value) or {}).get(key), str):
            check(report, document, (*trigger.path, key), name, known=known)


def _check_source(
    report: Report,
    document: DeclarationFile,
    path: Path,
    definition: VariableDefinition,
    known: KnownNames,
) -> None:
    if definition.type is None and not isinstance(definition.source, Static):
        report.add(
            document,
            path[:-1],
            "W011",
            f"Variable {definition.name!r} has no `type`.",
            remedy="Add it; only static variables may omit it.",
        )
    _check_enum(report, document, (*path[:-1], "enum"), definition)
    match definition.source:
        case Static(value=value):
            _check_value(report, document, (*path, "value"), definition, value=value)
        case FromEnvironment(default=default):
            _check_value(report, document, (*path, "default"), definition, value=default)
        case FileSource():
            pass  # its content is checked when it is read
        case DatabaseSource():
            _check_stored(report, document, path, definition, source=definition.source)
        case Derived(default=default, triggers=triggers):
            _check_value(report, document, (*path, "default"), definition, value=default)
            for number, trigger in enumerate(triggers):
                where = (*path, "triggers", number)
                _check_trigger(report, document, where, definition, trigger=trigger, known=known)


def _check_enum(
    report: Report, document: DeclarationFile, path: Path, definition: VariableDefinition
) -> None:
    untold = definition.model_copy(update={"enum": None})
    for number, allowed in enumerate(definition.enum or ()):
        _check_value(report, document, (*path, number), untold, value=allowed)


def _check_value(
    report: Report,
    document: DeclarationFile,
    path: Path,
    definition: VariableDefinition,
    value: Json,
) -> None:
    if problem := misfit(definition, value):
        report.add(document, path, "W024", f"{problem}.", remedy="Change the value or the type.")


def _check_stored(
    report: Report,
    document: DeclarationFile,
    path: Path,
    definition: VariableDefinition,
    source: DatabaseSource,
) -> None:
    """Check the names of fields, and that several of them make an object."""
    _check_value(report, document, (*path, "default"), definition, value=source.default)
    places: dict[Path, str] = {("filter", key): key for key in source.filter}
    places |= {("fields", number): field for number, field in enumerate(source.fields)}
    places |= {("field",): source.field} if source.field is not None else {}
    _check_fields(report, document, path, places)
    if source.fields and definition.type in type_names.keys() - {"object"}:
        message = f"{definition.name!r} reads several fields, so that it is an object."
        remedy = "Set `type: object`, or read one `field`."
        report.add(document, (*path[:-1], "type"), "W024", message, remedy=remedy)


def _check_fields(
    report: Report, document: DeclarationFile, path: Path, places: Mapping[Path, str]
) -> None:
    for place, field in places.items():
        try:
            steps(field)
        except UsageError as error:
            where = (*path, *place)
            report.add(document, where, "W012", str(error), remedy="Correct the name.")


def _check_trigger(
    report: Report,
    document: DeclarationFile,
    path: Path,
    definition: VariableDefinition,
    trigger: Trigger,
    known: KnownNames,
) -> None:
    agent, tool = _agent_of(trigger), getattr(trigger, "tool", None)
    if tool is not None:
        _check_tool(report, document, (*path, "tool"), tool, known=known)
    if agent is not None:
        key = "agent" if hasattr(trigger, "agent") else "since"
        _check_agent(report, document, (*path, key), agent, known=known)
    if isinstance(trigger, UiResponse) and trigger.ui_hidden:
        message = "`ui_hidden` has no effect on answers: the user does not see them as messages."
        report.warn(document, (*path, "ui_hidden"), "W015", message, remedy="Remove it.")
    for value in trigger.values or ():
        if problem := misfit(definition, value):
            remedy = "Set the `value` of the trigger."
            report.add(document, (*path, "value"), "W024", f"{problem}.", remedy=remedy)
    if isinstance(trigger, AgentTextTrigger) and ends_chats(trigger):
        message = f"Trigger waits for {ENDING!r}, which ends an AG2 chat before the trigger fires."
        remedy = "Choose another word if the folder is attached to an AG2 chat."
        report.warn(document, (*path, "match"), "W064", message, remedy=remedy)
    try:
        TRIGGER_LOADERS[trigger.type].listen(trigger, "")
    except ValueError as error:
        report.add(document, (*path, "match", "regex"), "W025", str(error), remedy="Correct it.")


def _check_tool(
    report: Report, document: DeclarationFile, path: Path, tool: str, known: KnownNames
) -> None:
    if known.tools is not None and tool not in known.tools:
        message = f"Trigger listens to tool {tool!r}, which is not declared; it can never fire."
        hint = nearest(tool, sorted(known.tools))
        remedy = f"Did you mean {hint!r}?" if hint else "Declare it in the tools file."
        report.add(document, path, "W045", message, remedy=remedy)


def _check_agent(
    report: Report, document: DeclarationFile, path: Path, agent: str, known: KnownNames
) -> None:
    agents = known.agents
    if agents and agent not in agents:
        hint = nearest(agent, sorted(agents))
        remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(sorted(agents))}."
        message = f"Trigger listens to agent {agent!r}, which is not declared."
        report.add(document, path, "W020", message, remedy=remedy)


def _agent_of(trigger: Trigger) -> str | None:
    since: str = getattr(trigger, "since", "")
    if since.startswith("agent:"):
        return since.removeprefix("agent:")
    return getattr(trigger, "agent", None)


def _variable_of(trigger: Trigger) -> str | None:
    since: str = getattr(trigger, "since", "")
    if since.startswith("variable:"):
        return since.removeprefix("variable:")
    return getattr(trigger, "variable", None)


def _check_heard(
    report: Report,
    document: DeclarationFile,
    definitions: Mapping[str, VariableDefinition],
    places: Mapping[str, DocumentEntry],
    declared: Set[str],
) -> None:
    """Report triggers that listen to undeclared variables, and cycles of triggers."""
    hears: dict[str, set[str]] = {}
    for name, definition in definitions.items():
        source = definition.source
        for number, trigger in enumerate(source.triggers if isinstance(source, Derived) else ()):
            other = _variable_of(trigger)
            if other is None:
                continue
            hears.setdefault(name, set()).add(other)
            path = (*places[name].path, "source", "triggers", number)
            if other not in declared:
                hint = nearest(other, sorted(declared))
                remedy = f"Did you mean {hint!r}?" if hint else "Add it under `definitions`."
                message = f"Trigger listens to variable {other!r}, which is not declared."
                report.add(document, path, "W021", message, remedy=remedy)
            elif other in definitions and not isinstance(definitions[other].source, Derived):
                message = f"Trigger listens to variable {other!r}, which never changes."
                report.warn(document, path, "W038", message, remedy="Use a derived variable.")
            elif other in definitions and isinstance(trigger, ContextChange):
                where = (*path, "equals")
                _check_value(report, document, where, definitions[other], value=trigger.equals)
    circle = cycle_of(hears)
    if circle:
        message = f"Variables change each other in a cycle: {' → '.join(circle)}."
        report.add(
            document, places[circle[0]].path, "W036", message, remedy="Remove one of the triggers."
        )


def _exposure(
    report: Report, document: DeclarationFile, entry: DocumentEntry, agents: Set[str]
) -> Exposure | None:
    exposure = report.model(document, entry, Exposure) or readable(entry.value, Exposure)
    if exposure is not None and exposure.name not in agents and agents:
        hint = nearest(exposure.name, sorted(agents))
        remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(sorted(agents))}."
        message = f"Variables are shown to agent {exposure.name!r}, which is not declared."
        report.add(document, entry.path, "W020", message, remedy=remedy)
    return exposure


def _check_exposed(
    report: Report,
    document: DeclarationFile,
    exposures: Iterable[Exposure],
    places: Mapping[str, DocumentEntry],
    declared: Set[str],
) -> None:
    """Report undeclared variables, and templates that contradict `variables`."""
    known = sorted({*declared, *BASE, *BAKED_IN})
    for exposure in exposures:
        path = places[exposure.name].path
        for name in names_of(exposure):
            if name not in known:
                hint = nearest(name, known)
                remedy = f"Did you mean {hint!r}?" if hint else "Add it under `definitions`."
                remedy = _OF_A_SCHEMA if name in _SCHEMA_NAMES else remedy
                message = f"Agent {exposure.name!r} is shown {name!r}, which is not declared."
                where = (*path, *place_in(exposure, name))
                report.add(document, where, "W021", message, remedy=remedy)
        if exposure.template is not None and exposure.variables:
            _check_template(report, document, path, exposure)


def _check_template(
    report: Report, document: DeclarationFile, path: Path, exposure: Exposure
) -> None:
    shown, listed = set(names_of(exposure)), set(exposure.variables)
    for name in sorted(shown ^ listed):
        says = "shows" if name in shown else "omits"
        message = f"The template of {exposure.name!r} {says} {name!r}, unlike its `variables`."
        remedy = "Make them agree, or remove `variables`."
        report.add(document, (*path, "template"), "W037", message, remedy=remedy)


def file_variables(
    document: DeclarationFile | None,
) -> Iterator[tuple[Path, VariableDefinition, FileSource]]:
    """The valid variables that are read from files, with their paths in the document."""
    if document is None:
        return
    report = Report(document.file)
    root = report.part(document, "context_variables")
    declared = _defined(root, as_object(root.value) or {})
    for entry in report.named(document, declared, "Variable").entries.values():
        source = as_object((as_object(entry.value) or {}).get("source")) or {}
        if source.get("type") == "file":
            definition = report.model(document, entry, definition_model())
            if definition is not None and isinstance(definition.source, FileSource):
                yield entry.path, definition, definition.source


def describe(document: DeclarationFile) -> dict[str, str]:
    """The descriptions of variables, by name."""
    said = {name: value.get("description") for name, value in _raw(document).items()}
    return {name: text for name, text in said.items() if isinstance(text, str) and text}


def domains(document: DeclarationFile) -> dict[str, VariableDefinition]:
    """The declared types and enums of variables, by name, without their sources."""
    found: dict[str, VariableDefinition] = {}
    for name, value in _raw(document).items():
        kept: dict[str, Json] = {key: value[key] for key in ("type", "enum") if key in value}
        kept |= {"name": name, "source": {"type": "static", "value": None}}
        with suppress(ValidationError):
            found[name] = VariableDefinition.model_validate(kept)
    return found


def _raw(document: DeclarationFile) -> dict[str, Mapping[str, Json]]:
    """The definitions as written.

    A run may be pinned to declarations that fail the check of this process: a trigger kind may be
    registered only in another one.
    """
    report = Report(document.file)
    declared = as_object(report.part(document, "context_variables").value) or {}
    named = report.named(document, DocumentEntry((), declared.get("definitions")), "Variable")
    return {name: as_object(entry.value) or {} for name, entry in named.entries.items()}
