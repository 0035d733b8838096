"""The store of runs, documents and collections in PostgreSQL. Needs the extra `postgres`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.postgres.artifacts import PostgresArtifacts
    from turnloom.adapters.postgres.beliefs import PostgresBeliefs
    from turnloom.adapters.postgres.documents import PostgresDocuments
    from turnloom.adapters.postgres.store import PostgresStore
    from turnloom.adapters.postgres.vectors import PostgresVectors
except ModuleNotFoundError as error:
    if error.name != "psycopg":
        raise
    raise UsageError(
        "PostgreSQL needs the package 'psycopg', which is not installed. "
        'Install it with: pip install "turnloom[postgres]"'
    ) from error

__all__ = [
    "PostgresArtifacts",
    "PostgresBeliefs",
    "PostgresDocuments",
    "PostgresStore",
    "PostgresVectors",
]
