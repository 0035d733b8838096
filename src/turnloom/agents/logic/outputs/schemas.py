"""JSON Schemas that a workflow declares for answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from turnloom.agents.logic.outputs.emptiness import Emptiness
from turnloom.agents.logic.outputs.reading import describe_faults, unusable
from turnloom.agents.spec.outputs import Validated
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.matching import compiled

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Keywords by their content: a schema, a list of schemas, schemas by name, a value.
_ONE = frozenset(
    "additionalProperties contains else if items not propertyNames then unevaluatedItems"
    " unevaluatedProperties".split()
)
_LISTED = frozenset("allOf anyOf oneOf prefixItems".split())
_NAMED = frozenset("$defs dependentSchemas properties".split())
_VALUED = frozenset(
    "$ref const dependentRequired enum exclusiveMaximum exclusiveMinimum format maxContains"
    " maxItems maxLength maxProperties maximum minContains minItems minLength minProperties"
    " minimum multipleOf pattern required type uniqueItems"
    " $comment $schema default deprecated description examples readOnly title writeOnly".split()
)
# The schemas `true` and `false`, as objects.
_BOOLEANS: dict[bool, dict[str, Json]] = {True: {}, False: {"not": {}}}
_KNOWN = sorted(_ONE | _LISTED | _NAMED | _VALUED)


class _Library(NamedTuple):
    """The JSON Schema validator: `checker` matches patterns with RE2, `plain` is the original."""

    checker: Any
    plain: Any
    best_match: Any


@cache
def _library() -> _Library:
    """Import the validator on first use."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError, best_match
    from jsonschema.validators import extend

    def match(_: Any, pattern: str, value: Json, __: Any) -> Iterator[ValidationError]:
        """Match patterns with RE2, in linear time."""
        if isinstance(value, str) and not compiled(pattern).search(value):
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    checker: Any = extend(Draft202012Validator, {"pattern": match})
    return _Library(checker, Draft202012Validator, best_match)


@dataclass(frozen=True)
class SchemaModel:
    """A model given by its JSON Schema."""

    name: str
    schema: dict[str, Json]

    def validate(self, value: Json) -> Validated:
        """The unchanged value, or the problem."""
        if problem := unusable(value):
            return Validated(None, problem)
        library = _library()
        checker = library.checker(self.schema, format_checker=library.plain.FORMAT_CHECKER)
        try:
            faults = list(_faults(checker, value))
        except RecursionError:
            return Validated(None, "The schema refers to itself endlessly.")
        except OverflowError:
            return Validated(None, "The value contains a number that is too large.")
        return Validated(None, describe_faults(faults)) if faults else Validated(value)


def schema_model(name: str, schema: dict[str, Json]) -> SchemaModel:
    """A model of a JSON Schema (2020-12).

    Raises:
        ValueError: the schema is invalid, or a part of it has no effect; the message says which.
    """
    report = Report(name)
    model = check_schema(report, DeclarationFile(name, schema, ""), DocumentEntry((), schema), name)
    if model is None:
        raise ValueError(" ".join(f"{each.message} {each.remedy}" for each in report.problems))
    return model


def check_schema(
    report: Report, document: DeclarationFile, entry: DocumentEntry, name: str = "response"
) -> SchemaModel | None:
    """The model of a JSON Schema in a document; on problems, report them and return None."""
    before = len(report.problems)
    plain = _library().plain
    for path, fault in _faults(plain(plain.META_SCHEMA), entry.value):
        message = f"Invalid JSON Schema: {fault}."
        report.add(document, (*entry.path, *path), "W012", message, remedy="Correct it.")
    if len(report.problems) == before:
        _check_parts(report, document, entry)
    if len(report.problems) == before and (reason := _emptiness(entry.value)):
        message = f"No value matches this schema: {reason}."
        report.add(document, entry.path, "W035", message, remedy="Resolve the contradiction.")
    return SchemaModel(name, entry.value) if len(report.problems) == before else None


def _check_parts(report: Report, document: DeclarationFile, entry: DocumentEntry) -> None:
    """Report keys without effect and unresolved references."""
    schemas = {_pointer(path): (path, schema) for path, schema in _subschemas((), entry.value)}
    for path, schema in schemas.values():
        where = (*entry.path, *path)
        _check_keys(report, document, where, schema)
        reference: str = schema.get("$ref", "#")
        if unquote(reference) not in schemas:  # nothing is ever fetched
            message = f"Unresolved reference {preview(reference)}."
            remedy = "Declare it under `$defs`."
            report.add(document, (*where, "$ref"), "W039", message, remedy=remedy)


def _emptiness(schema: dict[str, Json]) -> str | None:
    parts = {_pointer(path): part for path, part in _subschemas((), schema)}
    try:
        return Emptiness(_may_fit, parts).reason(schema)
    except (RecursionError, OverflowError):  # too deep or too large to tell
        return None


def _may_fit(value: Json, schema: Mapping[str, Any]) -> bool:
    """Whether a value matches a part of a schema; true if references prevent a decision."""
    if any("$ref" in part for _, part in _subschemas((), dict(schema))):
        return True
    return _library().checker(schema).is_valid(value)


def _pointer(path: Path) -> str:
    """The JSON pointer of a location in a schema."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(["#", *(f"/{step}" for step in steps)])


def _check_keys(
    report: Report, document: DeclarationFile, path: Path, schema: Mapping[str, Any]
) -> None:
    for key in schema:
        if key not in _KNOWN and not key.startswith("x-"):
            report.unknown(document, (*path, key), _KNOWN)
    dialect: str = schema.get("$schema", _DIALECT)
    if dialect.rstrip("#") != _DIALECT:
        message = f"Unsupported `$schema` {dialect!r}; only draft 2020-12 is supported."
        remedy = "Use that draft, or remove `$schema`."
        report.add(document, (*path, "$schema"), "W012", message, remedy=remedy)
    try:
        compiled(schema.get("pattern", ""))
    except ValueError as error:
        report.add(document, (*path, "pattern"), "W025", str(error), remedy="Correct it.")


def _subschemas(path: Path, schema: Any) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """A schema and all of its subschemas, with their paths."""
    mapping: Mapping[str, Any] = _BOOLEANS[schema] if isinstance(schema, bool) else schema
    yield path, mapping
    for key, value in mapping.items():
        inside: Iterable[tuple[str | int, Any]] = ()
        if key in _LISTED:
            inside = enumerate(as_array(value) or ())
        elif key in _NAMED:
            inside = (as_object(value) or {}).items()
        elif key in _ONE:
            yield from _subschemas((*path, key), value)
        for step, part in inside:
            yield from _subschemas((*path, key, step), part)


def _faults(checker: Any, value: Json) -> Iterator[tuple[Path, str]]:
    """Each fault by its deepest cause, with long values truncated."""
    for fault in checker.iter_errors(value):
        cause = _library().best_match([fault]) or fault
        shown, short = repr(cause.instance), preview(cause.instance)
        yield tuple(cause.absolute_path), cause.message.replace(shown, short)
