"""Migration of older variables files to the current format, with a note per entry."""

from turnloom.variables.logic.migration.document import migrate
from turnloom.variables.logic.migration.layout import Became, Migrated, Note, Stub

__all__ = ["Became", "Migrated", "Note", "Stub", "migrate"]
