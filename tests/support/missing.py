"""Packages that are installed, as if they were not."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import pytest

from turnloom.errors import UsageError

# Beside an adapter, what imports a package that the adapter needs.
BETWEEN = ("turnloom.agents.service", "pydantic_ai.models.openai")


@contextmanager
def without(package: str, *importers: str) -> Generator[None]:
    """A package is missing, and none of the importers is imported yet."""
    names = (*importers, *BETWEEN)

    def forget() -> dict[str, ModuleType]:
        below = tuple(f"{name}." for name in names)
        known = [name for name in list(sys.modules) if name.startswith(below)]
        return {name: sys.modules.pop(name) for name in (*names, *known) if name in sys.modules}

    forgotten, patch = forget(), pytest.MonkeyPatch()
    try:
        patch.setitem(sys.modules, package, None)
        yield
    finally:
        patch.undo()
        forget()
        sys.modules.update(forgotten)
        for name, module in forgotten.items():
            parent, _, child = name.rpartition(".")
            setattr(sys.modules[parent], child, module)


def refused_without(package: str, adapter: str) -> UsageError:
    """What importing an adapter is refused with where a package is missing."""
    with without(package, adapter), pytest.raises(UsageError) as refused:
        import_module(adapter)
    return refused.value
