"""Errors by their kind and by the values that they name, whatever their words are."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

import pytest

E = TypeVar("E", bound=Exception)


@contextmanager
def raising(kind: type[E], *values: str) -> Generator[pytest.ExceptionInfo[E]]:
    """Expect an error of a kind whose message names these values."""
    with pytest.raises(kind) as raised:
        yield raised
    for value in values:
        assert value in str(raised.value)
