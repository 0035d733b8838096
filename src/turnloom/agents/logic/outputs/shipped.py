"""Models given by a built-in JSON Schema, such as that of a workflow file."""

from collections.abc import Callable, Mapping

from turnloom.agents.logic.outputs.schemas import SchemaModel
from turnloom.agents.spec.outputs import OutputModel
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.kernel.values import Json, as_object, nearest, preview

# The type of a built-in model, and the key that names its schema.
SCHEMA = "schema"
_KEYS = ("type", "name", SCHEMA)

Shipped = Mapping[str, Callable[[], dict[str, Json]]]


def is_shipped(entry: DocumentEntry) -> bool:
    """Whether a model is given by a built-in schema."""
    return (as_object(entry.value) or {}).get("type") == SCHEMA


def check_shipped(
    report: Report,
    document: DeclarationFile,
    entries: Mapping[str, DocumentEntry],
    shipped: Shipped,
) -> dict[str, OutputModel]:
    """The models of these entries; one with an unknown schema accepts anything."""
    found: dict[str, OutputModel] = {}
    for name, entry in entries.items():
        for key in entry.value:
            if key not in _KEYS:
                report.unknown(document, (*entry.path, key), _KEYS)
        schema = _named(report, document, entry, shipped)
        found[name] = SchemaModel(name, shipped[schema]() if schema else {})
    return found


def _named(
    report: Report, document: DeclarationFile, entry: DocumentEntry, shipped: Shipped
) -> str | None:
    """The name of the schema, if it exists."""
    name = entry.value.get(SCHEMA)
    if isinstance(name, str) and name in shipped:
        return name
    hint = nearest(str(name), list(shipped))
    remedy = f"Did you mean {hint!r}?" if hint else f"Use one of: {', '.join(shipped)}."
    if name is None:
        report.add(document, entry.path, "W011", f"Key {SCHEMA!r} is missing.", remedy=remedy)
    else:
        message = f"Unknown schema {preview(name)}."
        report.add(document, (*entry.path, SCHEMA), "W039", message, remedy=remedy)
    return None
