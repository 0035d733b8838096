"""Checks of `structured_outputs`: from a document to models, or to all of its problems."""

import re
from collections.abc import Iterable, Mapping, Set

from turnloom.agents.logic.outputs.language import OPTIONAL, TYPES, Default, FieldReader
from turnloom.agents.logic.outputs.models import DeclaredModel, Types
from turnloom.agents.logic.outputs.schemas import check_schema
from turnloom.agents.logic.outputs.shipped import Shipped, check_shipped, is_shipped
from turnloom.agents.spec.outputs import (
    ArrayOf,
    Either,
    MapOf,
    ObjectType,
    OutputModel,
    Outputs,
    Reference,
    ValueType,
)
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import DocumentEntry, NamedEntries, Report
from turnloom.kernel.values import Json, as_array, as_object, nearest, preview
from turnloom.variables.logic.cycles import cycle_of

# Well below the depth at which pydantic exhausts Python's stack.
MAX_LEVELS = 32


def endless(forms: Mapping[str, ValueType]) -> list[str]:
    """A cycle of models that require each other, from a name back to itself, or nothing."""
    variants = {name: _variants(form) for name, form in forms.items()}
    return cycle_of(variants) or cycle_of(_unfinished(forms))


def _variants(form: ValueType) -> set[str]:
    """The models that a value of a type may be as a whole."""
    match form:
        case Reference(model=model):
            return {model}
        case Either(variants=variants):
            return set[str]().union(*map(_variants, variants))
        case _:
            return set()


def _unfinished(forms: Mapping[str, ValueType]) -> dict[str, set[str]]:
    """Models without a finite value, and those of them that each requires."""
    needs = {name: _needs(form) for name, form in forms.items()}
    needed_by: dict[str, list[str]] = {name: [] for name in forms}
    for name, others in needs.items():
        for other in others:
            needed_by[other].append(name)
    finished: set[str] = set()
    waiting = list(forms)
    while waiting:
        name = waiting.pop()
        if name not in finished and _ends(forms[name], finished):
            finished.add(name)
            waiting += needed_by[name]
    return {name: others - finished for name, others in needs.items() if name not in finished}


def _ends(form: ValueType, finished: Set[str]) -> bool:
    match form:
        case Reference(model=model):
            return model in finished
        case Either(variants=variants):
            return any(_ends(each, finished) for each in variants)
        case ObjectType(keys=keys):
            return all(_ends(key.form, finished) for key in keys.values() if key.required)
        case _:
            return True


def _needs(form: ValueType) -> set[str]:
    match form:
        case ObjectType(keys=keys):
            needed = (_needs(key.form) for key in keys.values() if key.required)
            return set[str]().union(*needed)
        case Either(variants=variants):
            return set[str]().union(*map(_needs, variants))
        case _:
            return _variants(form)


def too_deep(forms: Mapping[str, ValueType]) -> str | None:
    """A model that reaches others through more levels than can be built at once."""
    return next((name for name in forms if _is_deep(forms[name], forms, {name}, MAX_LEVELS)), None)


def _is_deep(form: ValueType, forms: Mapping[str, ValueType], met: set[str], levels: int) -> bool:
    if isinstance(form, Reference):
        if form.model in met:
            return False
        met.add(form.model)
        form = forms[form.model]
    return levels == 0 or any(
        _is_deep(part, forms, met, levels - 1) for part in _parts_of_model(form)
    )


def _parts_of_model(form: ValueType) -> Iterable[ValueType]:
    match form:
        case ArrayOf(item=part) | MapOf(value=part):
            return (part,)
        case Either(variants=variants):
            return variants
        case ObjectType(keys=keys):
            return [key.form for key in keys.values()]
        case _:
            return ()


_OUTER = "structured_outputs"
_KEYS = ("models", "registry")
# Schema names that every provider accepts.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOTHING: Shipped = {}


def check_outputs(
    report: Report,
    document: DeclarationFile | None,
    agents: Set[str] | None,
    shipped: Shipped = _NOTHING,
) -> Outputs:
    """Check the outputs of a workflow; problems go to the report. `agents` is None if unknown.

    `shipped` are the built-in schemas that a model may name in place of fields.
    """
    if document is None:
        return Outputs()
    parts = _parts(report, document)
    declared = report.named(document, parts["models"], "Model")
    _check_names(report, document, declared)
    given = {name: entry for name, entry in declared.entries.items() if is_shipped(entry)}
    forms = _forms(report, document, declared, given.keys())
    types = Types(forms)
    models: dict[str, OutputModel] = {name: DeclaredModel(name, types) for name in forms}
    models |= check_shipped(report, document, given, shipped)
    outputs = Outputs(models, complete=declared.complete)
    registry = _registry(report, document, parts["registry"], outputs, agents=agents)
    return Outputs(models, registry, declared.complete)


def check_response(
    report: Report, document: DeclarationFile, entry: DocumentEntry, outputs: Outputs
) -> OutputModel | None:
    """The model of an answer, given by name or by a JSON Schema."""
    if isinstance(entry.value, str):
        return _named(report, document, entry, outputs)
    if isinstance(entry.value, dict):
        return check_schema(report, document, entry)
    message = (
        f"A response must be a JSON Schema or the name of a model, not {preview(entry.value)}."
    )
    report.add(document, entry.path, "W012", message, remedy="Write one of them.")
    return None


def _named(
    report: Report, document: DeclarationFile, entry: DocumentEntry, outputs: Outputs
) -> OutputModel | None:
    model = outputs.models.get(entry.value)
    if model is None and outputs.complete:
        hint = nearest(entry.value, sorted(outputs.models))
        remedy = f"Did you mean {hint!r}?" if hint else "Declare it under `models`."
        message = f"Model {entry.value!r} is not declared."
        report.add(document, entry.path, "W039", message, remedy=remedy)
    return model


def _parts(report: Report, document: DeclarationFile) -> dict[str, DocumentEntry]:
    """Models and registry; the registry may also be next to the outer key."""
    beside, inner = _layers(report, document)
    parts = {key: DocumentEntry((*inner.path, key), None) for key in _KEYS} | beside
    mapping = as_object(inner.value)
    if mapping is None and inner.value is not None:
        remedy = "Write `models` and `registry`."
        report.add(
            document, inner.path, "W012", "Structured outputs must be an object.", remedy=remedy
        )
    for key, part in (mapping or {}).items():
        path = (*inner.path, key)
        if key not in _KEYS:
            report.unknown(document, path, _KEYS)
        elif key in beside:
            message = f"`{key}` is given both inside and outside `{_OUTER}`."
            report.add(document, path, "W013", message, remedy="Keep one of them.")
        else:
            parts[key] = DocumentEntry(path, part)
    return parts


def _layers(
    report: Report, document: DeclarationFile
) -> tuple[dict[str, DocumentEntry], DocumentEntry]:
    """The entries next to the outer key, and the entry under it or in its place."""
    value = as_object(document.value)
    if value is None or _OUTER not in value:
        return {}, DocumentEntry((), document.value)
    beside: dict[str, DocumentEntry] = {}
    for key in value:
        if key == "registry":
            beside[key] = DocumentEntry((key,), value[key])
        elif key != _OUTER:
            report.unknown(document, (key,), (_OUTER, "registry"))
    return beside, DocumentEntry((_OUTER,), value[_OUTER])


def _check_names(report: Report, document: DeclarationFile, declared: NamedEntries) -> None:
    for name, entry in declared.entries.items():
        if name in TYPES or name.startswith(OPTIONAL):
            message = f"Model name {name!r} is reserved for a type."
            report.add(document, entry.path, "W026", message, remedy="Choose another name.")
        elif not _NAME.fullmatch(name):
            message = f"Model name {name!r} must be 1 to 64 letters, digits, `_` or `-`."
            report.add(document, entry.path, "W012", message, remedy="Rename it.")


def _forms(
    report: Report, document: DeclarationFile, declared: NamedEntries, given: Set[str]
) -> dict[str, ValueType]:
    """The type of each model, except those given by a schema."""
    entries = {name: entry for name, entry in declared.entries.items() if name not in given}
    reader = FieldReader(report, document, entries.keys(), declared.complete, whole=given)
    forms = {name: reader.model(entry) for name, entry in entries.items()}
    circle = endless(forms)
    if circle:
        message = f"No finite value exists: {' → '.join(circle)}."
        remedy = "Make one of the fields optional."
        report.add(document, declared.entries[circle[0]].path, "W035", message, remedy=remedy)
    elif deep := too_deep(forms):
        message = f"Model {deep!r} is nested deeper than {MAX_LEVELS} levels."
        report.add(
            document, declared.entries[deep].path, "W005", message, remedy="Make it flatter."
        )
    else:
        _check_defaults(report, document, reader.defaults, Types(forms))
    return forms


def _check_defaults(
    report: Report, document: DeclarationFile, defaults: Iterable[Default], types: Types
) -> None:
    for path, form, value in defaults:
        # Its own defaults would be filled in, endlessly if the model contains itself.
        if _holds_object(value) and _holds_model(form):
            message = "A default cannot contain an object with declared fields."
            report.add(document, path, "W012", message, remedy="Remove it, or use null.")
        elif problem := types.validate(form, value).problem:
            message = f"The default does not match its type. {problem}."
            report.add(document, path, "W024", message, remedy="Change the default or the type.")


def _holds_object(value: Json) -> bool:
    return isinstance(value, dict) or any(map(_holds_object, as_array(value) or ()))


def _holds_model(form: ValueType) -> bool:
    match form:
        case ArrayOf(item=part) | MapOf(value=part):
            return _holds_model(part)
        case Either(variants=variants):
            return any(map(_holds_model, variants))
        case _:
            return isinstance(form, ObjectType | Reference)


def _registry(
    report: Report,
    document: DeclarationFile,
    entry: DocumentEntry,
    outputs: Outputs,
    agents: Set[str] | None,
) -> Mapping[str, str]:
    """The model of each agent; null means that an agent has none."""
    registry: dict[str, str] = {}
    if entry.value is not None and as_object(entry.value) is None:
        message = f"The registry must be an object, not {preview(entry.value)}."
        report.add(document, entry.path, "W012", message, remedy="Write `agent: model`.")
    for agent, model in (as_object(entry.value) or {}).items():
        path = (*entry.path, agent)
        if agents is not None and agent not in agents:
            hint = nearest(agent, sorted(agents))
            declared = ", ".join(sorted(agents))
            remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {declared}."
            message = f"Agent {agent!r} in the registry is not declared."
            report.add(document, path, "W020", message, remedy=remedy)
        if isinstance(model, str):
            if _named(report, document, DocumentEntry(path, model), outputs) is not None:
                registry[agent] = model
        elif model is not None:
            message = f"The output of {agent!r} must name a model, not {preview(model)}."
            report.add(
                document, path, "W012", message, remedy="Write the name of a model, or null."
            )
    return registry
