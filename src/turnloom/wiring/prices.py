"""Prices of models: those of `turnloom.toml`, and a dated list of ours."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from turnloom.errors import UsageError
from turnloom.guards.spec import ANY_MODEL, Price
from turnloom.kernel.values import as_object, preview
from turnloom.wiring.settings import table

LIST = Path(__file__).with_name("prices.toml")


def read_prices() -> Mapping[str, Price]:
    """The prices of models by name: of `[prices]` in `turnloom.toml`, else of our list. A price for
    any model replaces the whole list.

    Raises:
        UsageError: one is not a price.
    """
    given = table("prices")
    declared = as_object({} if given is None else given)
    if declared is None:
        raise UsageError(f"`prices` in turnloom.toml must be a table, got {preview(given)}.")
    prices = {name: _price(name, each) for name, each in declared.items()}
    return prices if ANY_MODEL in prices else {**listed_prices(), **prices}


def listed_prices() -> dict[str, Price]:
    """The prices of our list, by model."""
    models = tomllib.loads(LIST.read_text("utf-8"))["models"]
    return {name: Price(**price) for name, price in models.items()}


def _price(name: str, given: object) -> Price:
    try:
        return Price.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("prices", name, *first["loc"])))
        raise UsageError(f"`{where}` in turnloom.toml is not a price: {first['msg']}.") from None
