"""Adapters by name, imported when they are used."""

from functools import cache
from importlib import import_module
from typing import Any


@cache
def adapter(name: str) -> Any:
    """The package of an adapter."""
    return import_module(f"turnloom.adapters.{name}")
