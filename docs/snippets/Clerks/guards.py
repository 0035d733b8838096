"""The category of a letter."""

from collections.abc import Mapping
from typing import Any


def topic(values: Mapping[str, Any]) -> str:
    return "billing" if values["about_money"] else "other"
