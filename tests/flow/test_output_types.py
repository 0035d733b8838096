"""Models of programs as forms of answers: what they refuse, and how they come back."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from tests.flow.scenes import Model, Work, Writer, facts, flow_of
from turnloom import AssembledContext, Loom


class Aliased(BaseModel):
    full_name: str = Field(alias="fullName")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field
    @property
    def area(self) -> int:
        return self.width**2


class Faulty(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number < 0:
            raise TypeError("below zero")
        return number


class Many(BaseModel):
    numbers: list[int]


def asking(model: type[BaseModel], shown: Callable[[Any], str]) -> type[Writer]:
    class Asks(Writer):
        output_type = model

        def apply(self, state: Work, answer: Any, context: AssembledContext) -> Any:
            return {"text": shown(answer)}

    return Asks


@pytest.mark.parametrize(
    ("model", "shown", "answer", "text"),
    [
        (Aliased, lambda it: it.full_name, '{"fullName": "Ada"}', "Ada"),
        (Strict, lambda it: it.day.isoformat(), '{"day": "2026-11-16"}', "2026-11-16"),
        (Computed, lambda it: str(it.area), '{"width": 3}', "9"),
    ],
    ids=["aliases", "strict", "computed"],
)
async def test_an_answer_comes_back_as_it_was_given(
    app: Loom, model: type[BaseModel], shown: Callable[[Any], str], answer: str, text: str
) -> None:
    outcome = await app.run(flow_of(asking(model, shown)(Model(answer))))
    assert outcome.state.text == text


async def test_what_a_validator_raises_is_told_to_the_engine(app: Loom) -> None:
    engine = Model('{"number": -1}', '{"number": 1}')
    outcome = await app.run(flow_of(asking(Faulty, lambda it: str(it.number))(engine)))
    assert outcome.state.text == "1"
    (refused,) = await facts(app, outcome.run_id, "output.refused")
    assert "TypeError" in refused.problem and "below zero" in refused.problem


async def test_of_many_faults_the_first_are_told(app: Loom) -> None:
    engine = Model('{"numbers": ["x"' + ', "x"' * 99 + "]}", '{"numbers": []}')
    outcome = await app.run(flow_of(asking(Many, lambda it: "none")(engine)))
    (refused,) = await facts(app, outcome.run_id, "output.refused")
    lines = refused.problem.splitlines()
    assert lines[0].startswith("`numbers[0]`: ") and len(lines) == 11
