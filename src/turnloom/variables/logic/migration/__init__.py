"""Files of any older shape, rewritten into today's, with what became of each entry."""

from turnloom.variables.logic.migration.document import migrate
from turnloom.variables.logic.migration.layout import Became, Migrated, Note

__all__ = ["Became", "Migrated", "Note", "migrate"]
