"""How much a run may use."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from pydantic import Field, field_validator, model_validator

from turnloom.kernel.durations import seconds
from turnloom.kernel.models import Declared

# The price of every model that has none of its own.
ANY_MODEL = "*"


class Price(Declared):
    """What a model costs: so much for a million tokens that it reads, and that it writes."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class RunBudget(Declared):
    """How much one run may use of each resource; what is left out is not limited.

    How many tokens an answer will have is not known before: `answer_tokens` are reserved for it,
    beside those of the frame.
    """

    steps: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    model_calls: int | None = Field(default=None, gt=0)
    tool_calls: int | None = Field(default=None, gt=0)
    wall_time: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    prices: Mapping[str, Price] = {}
    answer_tokens: int = Field(default=1000, ge=0)

    @field_validator("wall_time", mode="before")
    @classmethod
    def _reads_a_duration(cls, given: Any) -> Any:
        return seconds(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.cost is not None and not self.prices:
            raise ValueError(
                "'cost' is limited, and nothing says what a model costs. Add `prices`."
            )
        if self.prices and self.cost is None:
            raise ValueError("'prices' has no effect without a limit. Set `cost`, or drop it.")
        if self.tokens is not None and self.tokens < self.answer_tokens:
            raise ValueError(
                f"'tokens' is {self.tokens}, which has no room for one call: {self.answer_tokens} "
                "are reserved for an answer. Set `answer_tokens` lower, or `tokens` higher."
            )
        return self

    def price(self, model: str | None) -> Price | None:
        """What a model costs, if that is said."""
        return self.prices.get(model or ANY_MODEL, self.prices.get(ANY_MODEL))


class Amounts(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """So much of each resource that is counted call by call."""

    steps: int = 0
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost: float = 0.0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            self.steps + other.steps,
            self.tokens + other.tokens,
            self.model_calls + other.model_calls,
            self.tool_calls + other.tool_calls,
            self.cost + other.cost,
        )


# Every resource that can be limited, and the one that is measured instead of counted.
WALL_TIME = "wall_time"
RESOURCES = (*Amounts.__struct_fields__, WALL_TIME)
