"""Migration of older variables files to the current format, with a note per entry."""

from turnloom.variables.logic.migration.definitions import refusal
from turnloom.variables.logic.migration.document import migrate
from turnloom.variables.logic.migration.layout import (
    WORDS,
    Became,
    Migrated,
    Note,
    OlderShape,
    Stub,
    UnconvertedSource,
)

__all__ = [
    "WORDS",
    "Became",
    "Migrated",
    "Note",
    "OlderShape",
    "Stub",
    "UnconvertedSource",
    "migrate",
    "refusal",
]
