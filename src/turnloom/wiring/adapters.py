"""Adapters by name, imported on first use."""

from functools import cache
from importlib import import_module
from typing import Any


@cache
def adapter(name: str) -> Any:
    """Return the package of an adapter."""
    return import_module(f"turnloom.adapters.{name}")
