"""Steps get states of their own, and only what changed is read again."""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tests.flow.scenes import play
from turnloom import Flow, Loom, Path, append, merge


class Colour(Enum):
    """A value that nothing can change."""

    red = "red"


class Fixed(BaseModel):
    """A part that nothing can change."""

    model_config = ConfigDict(frozen=True)

    x: int = 0


class Loose(BaseModel):
    """A part with a list that a step could change."""

    model_config = ConfigDict(frozen=True)

    xs: list[int] = [0]


class Everything(BaseModel):
    """A state with fields of many kinds."""

    model_config = ConfigDict(frozen=True)

    n: int = 0
    colour: Colour | None = Colour.red
    word: Literal["a", "b"] = "a"
    pair: tuple[int, str] = (1, "x")
    texts: list[str] = ["a"]
    rows: list[dict[str, int]] = [{"a": 1}]
    fixed: list[Fixed] = [Fixed()]
    loose: list[Loose] = [Loose()]
    one: Loose = Loose()
    maybe: list[int] | None = [1]
    several: Sequence[int] = [1]
    anything: Any = {"deep": [1]}
    notes: Annotated[list[str], append] = ["first"]
    facts: Annotated[dict[str, list[int]], merge] = {"a": [1]}


def spoil(state: Everything) -> None:
    """Change in place whatever can be."""
    rows: Any = state
    rows.texts.append("spoilt")
    rows.rows[0]["spoilt"] = 1
    rows.rows.append({})
    rows.fixed.clear()
    rows.loose[0].xs.append(99)
    rows.one.xs.append(99)
    rows.maybe.append(99)
    rows.several.append(99)
    rows.anything["deep"].append(99)
    rows.notes.append("spoilt")
    rows.facts["a"].append(99)


async def test_what_a_step_changes_in_place_no_other_step_sees(app: Loom) -> None:
    seen: list[Everything] = []

    async def work(state: Everything) -> dict[str, Any]:
        seen.append(state.model_copy(deep=True))
        spoil(state)
        return {"n": state.n + 1, "notes": [f"note {state.n}"]}

    def is_done(state: Everything) -> bool:
        seen.append(state.model_copy(deep=True))
        spoil(state)
        return state.n == 3

    flow = Flow("f", Everything).start_with(work, name="a").repeat_until(is_done, Path(work))
    outcome = await app.run(flow, Everything())
    notes = ["first", "note 0", "note 1", "note 2"]
    assert outcome.state == Everything(n=3, notes=notes)
    assert seen == [Everything(n=n, notes=notes[: n + 1]) for n in (0, 1, 2, 2, 3)]


class Limited(BaseModel):
    """A state whose lists are limited as a whole."""

    model_config = ConfigDict(frozen=True)

    notes: Annotated[list[str], append, Field(max_length=2)] = []
    other: int = 0


class Validated(BaseModel):
    """A state of which code looks at the whole."""

    model_config = ConfigDict(frozen=True)

    low: int = 0
    high: int = 5

    @model_validator(mode="after")
    def _in_order(self) -> "Validated":
        assert self.low <= self.high
        return self


class Stripped(BaseModel):
    """A state with a setting that changes values."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    text: str = ""


class Even(BaseModel):
    """A state of which code looks at a field."""

    model_config = ConfigDict(frozen=True)

    n: int = 0

    @field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        assert n % 2 == 0
        return n


@pytest.mark.parametrize(
    ("state", "first", "second"),
    [
        (Limited(), {"notes": ["a"]}, {"notes": ["b", "c"]}),
        (Validated(), {"low": 3}, {"high": 2}),
        (Even(), {"n": 2}, {"n": 3}),
        (Fixed(), {"x": 1}, {"x": "one"}),
    ],
)
async def test_a_change_that_the_state_cannot_have_is_refused(
    app: Loom, state: Any, first: Any, second: Any
) -> None:
    flow = Flow("f", type(state)).start_with(lambda s: first, name="a")
    outcome = await play(app, flow.finally_(lambda s: second, name="b"), state)
    assert outcome.failure is not None
    assert (outcome.failure.step, outcome.failure.error) == ("b", "InvalidUpdate")
    assert outcome.state == state.model_copy(update=first)


async def test_settings_of_a_model_count_for_what_changes(app: Loom) -> None:
    seen: list[str] = []
    flow = Flow("f", Stripped).start_with(lambda s: {"text": " a "}, name="a")
    await app.run(flow.finally_(lambda s: seen.append(s.text), name="b"), Stripped())
    assert seen == ["a"]


async def test_large_fields_that_do_not_change_are_not_read_again(app: Loom) -> None:
    read: list[str] = []

    class Big(BaseModel):
        model_config = ConfigDict(frozen=True)

        n: int = 0
        rows: list[dict[str, str]] = []

    async def work(state: Big) -> dict[str, Any]:
        read.append(state.rows[0]["text"])
        return {"n": state.n + 1}

    flow = Flow("f", Big).start_with(work, name="a")
    flow = flow.repeat_until(lambda state: state.n == 5, Path(work))
    await app.run(flow, Big(rows=[{"text": "x" * 1000}]))
    assert len(read) == 5 and all(each is read[0] for each in read)
