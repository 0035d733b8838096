"""Documents, artifacts, beliefs and collections in PostgreSQL. Needs the extra `postgres`."""

from weft.errors import UsageError

try:
    from weft.adapters.postgres.artifacts import PostgresArtifacts
    from weft.adapters.postgres.beliefs import PostgresBeliefs
    from weft.adapters.postgres.documents import PostgresDocuments
    from weft.adapters.postgres.vectors import PostgresVectors
except ModuleNotFoundError as error:
    if error.name != "psycopg":
        raise
    raise UsageError(
        "PostgreSQL needs the package 'psycopg', which is not installed. "
        'Install it with: pip install "weft[postgres]"'
    ) from error

__all__ = ["PostgresArtifacts", "PostgresBeliefs", "PostgresDocuments", "PostgresVectors"]
