"""How loops are detected, and what is done about them."""

from typing import Literal, Self

from pydantic import Field, model_validator

from turnloom.kernel.models import Declared

Strategy = Literal[
    "inject_variation", "rotate_agent", "decompose", "synthesise", "escalate", "stop"
]


class Weights(Declared):
    """What each sign of a loop counts in the confidence that there is one; together 1."""

    repetition: float = Field(default=0.4, ge=0, le=1)
    semantic: float = Field(default=0.3, ge=0, le=1)
    no_progress: float = Field(default=0.2, ge=0, le=1)
    frustration: float = Field(default=0.1, ge=0, le=1)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = self.repetition + self.semantic + self.no_progress + self.frustration
        if abs(total - 1) > 0.001:
            raise ValueError(f"The weights add up to {total:g}. Let them add up to 1.")
        return self


class Strategies(Declared):
    """What is done about a loop of each kind."""

    exact_repetition: Strategy = "inject_variation"
    oscillation: Strategy = "synthesise"
    no_progress: Strategy = "decompose"
    semantic_repetition: Strategy = "rotate_agent"
    frustration: Strategy = "decompose"


class LoopDetection(Declared):
    """When turns of a run count as a loop, and what is done about it.

    Without `similarity`, nobody compares what turns said. After `max_resets` recoveries from the
    same loop, `then` is done about it.
    """

    window: int = Field(default=5, ge=2, le=20)
    similarity: float | None = Field(default=0.85, gt=0, le=1)
    threshold: float = Field(default=0.7, gt=0, le=1)
    weights: Weights = Weights()
    strategies: Strategies = Strategies()
    max_resets: int = Field(default=3, ge=0)
    then: Literal["escalate", "stop"] = "escalate"
