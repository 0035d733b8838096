"""Files of any older shape, rewritten into today's, with what became of each entry."""

from weft.variables.logic.migration.document import migrate
from weft.variables.logic.migration.notes import Became, Migrated, Note

__all__ = ["Became", "Migrated", "Note", "migrate"]
