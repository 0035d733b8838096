"""Stores in one SQLite file, the default on a single machine."""

from turnloom.adapters.sqlite.documents import SqliteDocuments
from turnloom.adapters.sqlite.store import SqliteStore

__all__ = ["SqliteDocuments", "SqliteStore"]
