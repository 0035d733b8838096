"""Arguments that only programs pass."""

from os import PathLike, fspath
from typing import cast

from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_string


def as_path(value: object, what: str) -> str:
    """A path, as a string or as an object that stands for one.

    Raises:
        UsageError: it is none.
    """
    given = fspath(cast("PathLike[str]", value)) if isinstance(value, PathLike) else value
    path = as_string(given, what)
    if "\0" in path:
        raise UsageError(f"{what} is {path!r}. No file is called by a NUL.")
    return path
