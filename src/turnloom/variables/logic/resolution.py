"""First values of variables, from their declarations and earlier readings of the world."""

from collections.abc import Iterator, Mapping
from itertools import starmap
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from turnloom.kernel.marks import mark, neutral
from turnloom.kernel.values import Json, writable
from turnloom.variables.events import UNAVAILABLE, ContextLoaded, ContextSuppressed, InitialValue
from turnloom.variables.logic.paths import steps, value_at
from turnloom.variables.logic.types import FALSE, CoercedValue, coerce, is_misfit, misfit
from turnloom.variables.spec import (
    BAKED_IN,
    DatabaseSource,
    Derived,
    FileSource,
    FromEnvironment,
    Static,
    VariableDefinition,
    Variables,
)
from turnloom.variables.spec.unknown import Unknown

PRODUCTION = "ENVIRONMENT"
INCLUDE_SCHEMA = "CONTEXT_INCLUDE_SCHEMA"


class Gates(NamedTuple):
    """The kinds of variables that this deployment excludes."""

    production: bool
    no_databases: bool


class LookupResult(NamedTuple):
    """The result of a document lookup: a document, or the problem."""

    document: Mapping[str, Json] | None
    problem: str = ""


class Readings(NamedTuple):
    """Values read from the world: gates, environment variables by name, documents and the contents
    of files by variable."""

    gates: Gates
    environment: Mapping[str, str | None]
    documents: Mapping[str, LookupResult]
    files: Mapping[str, Json] = MappingProxyType({})


class ResolvedContext(NamedTuple):
    """The first values of a run: the recorded ones, and the secrets in memory."""

    loaded: ContextLoaded
    suppressed: tuple[ContextSuppressed, ...]
    secrets: Mapping[str, Json]

    def __repr__(self) -> str:
        return f"Resolved({self.loaded!r}, secrets of {sorted(self.secrets)})"


def gates(production: str | None, include_schema: str | None) -> Gates:
    """The gates set by two environment variables."""
    excluded = include_schema is not None and include_schema.strip().lower() in FALSE
    return Gates((production or "").strip().lower() == "production", excluded)


# Variables with their sources.
EnvironmentFlag = tuple[VariableDefinition, FromEnvironment]
DatabaseLookup = tuple[VariableDefinition, DatabaseSource]


def flags(variables: Variables, closed: Gates) -> list[EnvironmentFlag]:
    """The flags to read: built-in ones that no definition replaces, and declared ones."""
    return [] if closed.production else _flags(variables)


def lookups(variables: Variables, closed: Gates) -> list[DatabaseLookup]:
    """The variables to read from databases."""
    return [] if closed.no_databases else _lookups(variables)


def resolve(variables: Variables, base: Mapping[str, Json], readings: Readings) -> ResolvedContext:
    """All first values: ids, flags, then definitions in declared order."""
    found = [InitialValue(name, "base", neutral(value)) for name, value in base.items()]
    if not readings.gates.production:
        found += [_flag(d, s, readings) for d, s in _undeclared_flags(variables)]
    secrets: dict[str, Json] = {}
    for definition in variables.definitions.values():
        each = _resolve(definition, readings)
        if each is not None:
            found.append(_hidden(each, secrets) if definition.secret else neutral(each))
    suppressed = tuple(_suppressed(variables, readings))
    return ResolvedContext(ContextLoaded(tuple(found)), suppressed, secrets)


def purge(resolved: ResolvedContext) -> tuple[ResolvedContext, list[str]]:
    """The values without suppressed ones, as a second safeguard, and the names it removed."""
    if not resolved.suppressed:
        return resolved, []
    closed = {name for each in resolved.suppressed for name in each.names}
    kept = [each for each in resolved.loaded.values if each.name not in closed]
    found = [each.name for each in resolved.loaded.values if each.name in closed]
    return resolved._replace(loaded=ContextLoaded(tuple(kept))), found


def missing(variables: Variables, resolved: ResolvedContext) -> list[str]:
    """Why required variables have no value."""
    if not variables.definitions:
        return []
    values = {each.name: each for each in resolved.loaded.values}
    return [
        f"{name!r} is required but has no value: {_reason(values.get(name))}"
        for name, definition in variables.definitions.items()
        if definition.required and _is_missing(values.get(name))
    ]


def _is_missing(found: InitialValue | None) -> bool:
    return found is None or found.value is None


def _reason(found: InitialValue | None) -> str:
    if found is None:
        return "it is disabled in this deployment"
    return f"{found.note or 'unset'} ({found.origin or found.source})"


def _hidden(found: InitialValue, secrets: dict[str, Json]) -> InitialValue:
    """A secret as it is recorded."""
    secrets[found.name] = found.value
    value = None if found.value is None else mark(found.name)
    return InitialValue(
        found.name,
        found.source,
        value,
        None,
        defaulted=found.defaulted,
        note=found.note,
        origin=found.origin,
    )


def resolve_again(variables: Variables, recorded: InitialValue) -> InitialValue:
    """A recorded first value, made again from its declaration and its raw text; others come from
    elsewhere and stay as they are."""
    definition = variables.definitions.get(recorded.name)
    if definition is None or definition.secret:
        return recorded
    match definition.source:
        case Static() | Derived():
            return _resolve(definition, Readings(Gates(False, False), {}, {})) or recorded
        case FromEnvironment(env_var=name) if recorded.raw is not None:
            readings = Readings(Gates(False, False), {name: recorded.raw}, {})
            return _resolve(definition, readings) or recorded
        case _:
            return recorded


def resolve_declared(definition: VariableDefinition) -> InitialValue | None:
    """The first value of a variable whose declaration has it."""
    return _resolve(definition, Readings(Gates(False, False), {}, {}))


def resolve_file(definition: VariableDefinition, files: Mapping[str, Json]) -> InitialValue | None:
    """The first value of a variable with the content of a file."""
    return _resolve(definition, Readings(Gates(False, False), {}, {}, files))


def refitted(definition: VariableDefinition, recorded: InitialValue) -> InitialValue:
    """A value that was read from the same place before, as another definition takes it. What did
    not fit then was not recorded, and is unknown."""
    match definition.source:
        case FromEnvironment(env_var=name):
            readings = Readings(Gates(False, False), {name: recorded.raw}, {})
            return _flag(definition, definition.source, readings)
        case DatabaseSource() as source if recorded.defaulted:
            if not (_is_absent(recorded.note) or is_misfit(definition, recorded.note)):
                value: Json = Unknown(recorded.name, "what was read then is not in the record")
                return msgspec.structs.replace(recorded, value=value)
            return msgspec.structs.replace(recorded, value=source.default)
        case _:
            fitting = _fit(definition, recorded.value)
            note = fitting.note or recorded.note
            return msgspec.structs.replace(recorded, value=fitting.value, note=note)


def _is_absent(note: str) -> bool:
    """Whether a note says that nothing was read."""
    return note in ("", "not_found") or note.startswith(UNAVAILABLE)


def origin_of(source: FromEnvironment | DatabaseSource) -> str:
    """The exact location that a source reads from."""
    if isinstance(source, FromEnvironment):
        return f"env {source.env_var}"
    place = f"{source.database_name}." if source.database_name else ""
    fields = source.field or f"{{{', '.join(source.fields)}}}"
    return f"{place}{source.collection}.{fields} by {_sought(source)}"


def _resolve(definition: VariableDefinition, readings: Readings) -> InitialValue | None:
    match definition.source:
        case Static(value=value):
            return InitialValue(definition.name, "static", value)
        case Derived(default=default):
            return InitialValue(definition.name, "derived", default, defaulted=True)
        case FromEnvironment():
            closed = readings.gates.production
            return None if closed else _flag(definition, definition.source, readings)
        case DatabaseSource():
            closed = readings.gates.no_databases
            return None if closed else _stored(definition, definition.source, readings)
        case FileSource(path=path):
            value = readings.files.get(definition.name)
            return InitialValue(definition.name, "file", value, origin=f"file {path}")


def _flag(
    definition: VariableDefinition, source: FromEnvironment, readings: Readings
) -> InitialValue:
    text, origin = readings.environment.get(source.env_var), origin_of(source)
    name = definition.name
    if text is None:
        return InitialValue(
            name, "environment", source.default, None, defaulted=True, note="", origin=origin
        )
    coerced = coerce(definition, text)
    value = source.default if coerced.failed else coerced.value
    raw = writable(text)
    return InitialValue(
        name, "environment", value, raw, defaulted=coerced.failed, note=coerced.note, origin=origin
    )


def _stored(
    definition: VariableDefinition, source: DatabaseSource, readings: Readings
) -> InitialValue:
    found = readings.documents.get(definition.name, LookupResult(None, "not_found"))
    origin = origin_of(source)
    if found.document is None:
        return _default(definition, source, found.problem or "not_found", origin)
    value = _ordered(_read(found.document, source))
    if value is None:
        return _default(definition, source, "not_found", origin)
    fitting = _fit(definition, value)
    if fitting.failed:
        return _default(definition, source, fitting.note, origin)
    return InitialValue(
        definition.name,
        "database",
        fitting.value,
        None,
        defaulted=False,
        note=fitting.note,
        origin=origin,
    )


def _read(document: Mapping[str, Json], source: DatabaseSource) -> Json:
    """The field of a document, or an object of several; null if the document has none of them."""
    if source.field is not None:
        return value_at(document, steps(source.field))
    found = {field: value_at(document, steps(field)) for field in source.fields}
    return found if any(value is not None for value in found.values()) else None


def _sought(source: DatabaseSource) -> str:
    """The conditions of a lookup, as in `user_id, owner = app_id, status = 'open'`."""
    ids = [key if key == name else f"{key} = {name}" for key, name in source.ids.items()]
    return ", ".join([*ids, *(f"{key} = {value!r}" for key, value in source.constants.items())])


def _ordered(value: Json) -> Json:
    """A value with sorted object keys, because databases order them differently."""
    return msgspec.to_builtins(value, order="sorted")


def _default(
    definition: VariableDefinition, source: DatabaseSource, note: str, origin: str
) -> InitialValue:
    return InitialValue(
        definition.name, "database", source.default, None, defaulted=True, note=note, origin=origin
    )


def _fit(definition: VariableDefinition, value: Json) -> CoercedValue:
    problem = misfit(definition, value)
    if not problem:
        return CoercedValue(value)
    if isinstance(value, str):
        return coerce(definition, value)
    return CoercedValue(None, f"{problem}; the default is used", True)


def _suppressed(variables: Variables, readings: Readings) -> Iterator[ContextSuppressed]:
    if readings.gates.production and (closed := _flags(variables)):
        names = tuple(definition.name for definition, _ in closed)
        yield ContextSuppressed(names, "ENVIRONMENT=production disables environment variables")
    if readings.gates.no_databases and (stored := _lookups(variables)):
        names = tuple(definition.name for definition, _ in stored)
        yield ContextSuppressed(names, "CONTEXT_INCLUDE_SCHEMA disables database variables")


def _baked_in(name: str, env_var: str) -> EnvironmentFlag:
    source = FromEnvironment(type="environment", env_var=env_var, default=False)
    return VariableDefinition(name=name, type="boolean", source=source), source


# Built once: every run has them.
_BAKED_IN = tuple(starmap(_baked_in, BAKED_IN.items()))


def _undeclared_flags(variables: Variables) -> list[EnvironmentFlag]:
    """The built-in flags that no definition replaces."""
    return [each for each in _BAKED_IN if each[0].name not in variables.definitions]


def _flags(variables: Variables) -> list[EnvironmentFlag]:
    declared = [
        (definition, definition.source)
        for definition in variables.definitions.values()
        if isinstance(definition.source, FromEnvironment)
    ]
    return [*_undeclared_flags(variables), *declared]


def _lookups(variables: Variables) -> list[DatabaseLookup]:
    return [
        (definition, definition.source)
        for definition in variables.definitions.values()
        if isinstance(definition.source, DatabaseSource)
    ]
