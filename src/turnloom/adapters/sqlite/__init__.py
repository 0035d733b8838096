"""Stores in one SQLite file: the default of a single machine."""

from turnloom.adapters.sqlite.documents import SqliteDocuments
from turnloom.adapters.sqlite.store import SqliteStore

__all__ = ["SqliteDocuments", "SqliteStore"]
