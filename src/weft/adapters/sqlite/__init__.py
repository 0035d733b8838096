"""Stores in one SQLite file: the default of a single machine."""

from weft.adapters.sqlite.documents import SqliteDocuments
from weft.adapters.sqlite.store import SqliteStore

__all__ = ["SqliteDocuments", "SqliteStore"]
