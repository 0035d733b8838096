"""Collections in a SQLite file, searched exactly. Needs the extra `vectors`."""

from weft.errors import UsageError

try:
    from weft.adapters.sqlite.vectors.store import SqliteVectors
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise UsageError(
        "Collections in a file need the package 'numpy', which is not installed. "
        'Install it with: pip install "weft[vectors]"'
    ) from error

__all__ = ["SqliteVectors"]
