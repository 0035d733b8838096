"""Collections in a SQLite file, with exact search. Needs the extra `vectors`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.sqlite.vectors.store import SqliteVectors
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise UsageError(
        "Collections in a file need the package 'numpy', which is not installed. "
        'Install it with: pip install "turnloom[vectors]"'
    ) from error

__all__ = ["SqliteVectors"]
