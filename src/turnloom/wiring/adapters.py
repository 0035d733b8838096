"""Adapters by name, imported when they are used."""

from importlib import import_module
from typing import Any


def adapter(name: str) -> Any:
    """The package of an adapter."""
    return import_module(f"turnloom.adapters.{name}")
