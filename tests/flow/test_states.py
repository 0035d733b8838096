"""What steps change in the state, and what they may not."""

import math
import operator
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tests.flow.scenes import Work, facts, flow_of, note, play
from turnloom import Flow, InvalidUpdate, Loom, StepContext, Update, append


def gives(given: Any, name: str = "gives") -> Any:
    """A step of that name that gives always the same."""

    async def step(state: Any, ctx: StepContext) -> Any:
        return given

    step.__name__ = name
    return step


async def test_each_step_is_taken_once_in_order_and_the_state_is_what_they_made(app: Loom) -> None:
    flow = (
        Flow("work", Work)
        .start_with(note("load", number=1))
        .then(note("check", number=2))
        .finally_(note("publish", text="done"))
    )
    outcome = await app.run(flow, Work(number=7))
    assert outcome.status == "finished" and outcome.failure is None
    assert outcome.state == Work(number=2, text="done", notes=["load", "check", "publish"])
    completed = await facts(app, outcome.run_id, "step.completed")
    assert [each.step for each in completed] == ["load", "check", "publish"]


@pytest.mark.parametrize(
    ("field", "before", "given", "after"),
    [
        ("number", 1, 2, 2),
        ("notes", ["a"], ["b", "c"], ["a", "b", "c"]),
        ("notes", ["a"], [], ["a"]),
        ("counts", {"a": 1, "b": 1}, {"b": 2, "c": 2}, {"a": 1, "b": 2, "c": 2}),
        ("best", 3, 2, 3),
        ("best", 3, 5, 5),
    ],
)
async def test_a_change_is_reduced_as_the_field_says(
    app: Loom, field: str, before: Any, given: Any, after: Any
) -> None:
    outcome = await app.run(flow_of(gives({field: given})), Work(**{field: before}))
    assert getattr(outcome.state, field) == after


async def test_a_step_that_leaves_a_list_as_it_is_changes_nothing(app: Loom) -> None:
    outcome = await app.run(flow_of(gives({}), gives(None, "nothing")), Work(notes=["a"]))
    assert outcome.state == Work(notes=["a"])


class Reading(BaseModel):
    """A state with a number that JSON may not be able to say."""

    model_config = ConfigDict(frozen=True)

    degrees: float = 0
    more: Any = None


@pytest.mark.parametrize("degrees", [math.nan, math.inf, -math.inf])
async def test_a_number_that_json_cannot_say_is_in_no_state(app: Loom, degrees: float) -> None:
    for given in ({"degrees": degrees}, {"more": degrees}, {"more": [{"deep": degrees}]}):
        outcome = await play(app, Flow("reading", Reading).start_with(gives(given)), Reading())
        assert outcome.failure is not None and outcome.failure.error == "InvalidUpdate"
        assert f"Reading.{next(iter(given))}" in outcome.failure.message
    with pytest.raises(InvalidUpdate):
        await app.run(Flow("reading", Reading).start_with(gives({})), Reading(degrees=degrees))


class Cat(BaseModel):
    """One of two that are told apart by their kind."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    """The other one."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["dog"] = "dog"


class Kept(BaseModel):
    """A state whose fields say more than their type."""

    model_config = ConfigDict(frozen=True)

    name: str = Field("", alias="Name", repr=False, max_length=5)
    pet: Cat | Dog = Field(Cat(), discriminator="kind", frozen=True)


@pytest.mark.filterwarnings("error")
async def test_what_a_field_says_beside_its_type_counts_without_a_warning(app: Loom) -> None:
    outcome = await app.run(Flow("k", Kept).start_with(gives({"name": "Ada", "pet": Dog()})))
    assert (outcome.state.name, outcome.state.pet) == ("Ada", Dog())
    outcome = await play(app, Flow("k", Kept).start_with(gives({"name": "Augusta"})), Kept())
    assert outcome.failure is not None and outcome.failure.error == "InvalidUpdate"
    assert "'Augusta'" in outcome.failure.message


def later(now: date, given: date) -> date:
    """The later of two days."""
    return max(now, given)


def joined(now: set[str], given: set[str] | str) -> set[str]:
    """What is in either, or one more."""
    return now | ({given} if isinstance(given, str) else given)


class Diary(BaseModel):
    """A state whose reducers are given values that JSON says otherwise."""

    model_config = ConfigDict(frozen=True)

    day: Annotated[date, later] = date(2026, 1, 1)
    tags: Annotated[set[str], joined] = set()


async def test_reducers_are_given_values_of_their_field_where_they_can_be(app: Loom) -> None:
    days = gives({"day": date(2026, 5, 1), "tags": {"a"}}, "days")
    one = gives({"day": date(2025, 5, 1), "tags": "b"}, "one")
    flow = Flow("diary", Diary).start_with(gives(None)).fork(days, one, join=gives({}, "join"))
    outcome = await app.run(flow, Diary())
    assert outcome.state == Diary(day=date(2026, 5, 1), tags={"a", "b"})


@pytest.mark.parametrize("form", [dict, Update])
async def test_a_list_that_is_given_back_as_it_was_does_not_come_twice(
    app: Loom, form: Any
) -> None:
    async def sees(state: Work, ctx: StepContext) -> Any:
        return form(notes=state.notes, number=len(state.notes))

    outcome = await app.run(flow_of(sees), Work(notes=["a"]))
    assert outcome.state == Work(notes=["a"], number=1)


@pytest.mark.parametrize(
    "scribble",
    [
        lambda notes: notes.append("b"),
        lambda notes: notes.pop(),
        lambda notes: notes.reverse(),
    ],
)
async def test_a_list_that_is_changed_in_place_and_given_back_is_refused(
    app: Loom, scribble: Any
) -> None:
    async def scribbles(state: Work, ctx: StepContext) -> Any:
        scribble(state.notes)
        return {"notes": state.notes}

    given = Work(notes=["a", "z"])
    outcome = await play(app, flow_of(scribbles), given)
    assert outcome.state == given and outcome.failure is not None
    assert outcome.failure.error == "InvalidUpdate"
    assert "Work.notes" in outcome.failure.message


class Added(BaseModel):
    """A state with a list that code of the program adds to, and one that is replaced."""

    model_config = ConfigDict(frozen=True)

    summed: Annotated[list[int], operator.add] = []
    plain: list[int] = []


async def test_reducers_of_ones_own_do_not_reduce_a_list_with_itself(app: Loom) -> None:
    async def sees(state: Added, ctx: StepContext) -> Any:
        state.plain.append(2)
        return {"summed": state.summed, "plain": state.plain}

    outcome = await app.run(Flow("added", Added).start_with(sees), Added(summed=[1], plain=[1]))
    assert outcome.state == Added(summed=[1], plain=[1, 2])


async def test_an_update_says_what_changes_and_how_sure_it_is(app: Loom) -> None:
    outcome = await app.run(
        flow_of(gives(Update(number=1)), gives(Update({"text": "so"}, confidence=0.9), "sure"))
    )
    assert (outcome.state.number, outcome.state.text) == (1, "so")
    first, second = await facts(app, outcome.run_id, "step.completed")
    assert (first.confidence, second.confidence) == (None, 0.9)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Work(number=1), ["Work"]),
        ({"nubmer": 1}, ["Work", "'nubmer'", "'number'"]),
        ({"colour": 1}, ["'colour'", *Work.model_fields]),
        ({"number": "many"}, ["'many'", "Work.number"]),
        ({"notes": "a"}, ["Work.notes"]),
        ({"best": "most"}, ["'best'"]),
        (42, ["42"]),
        (Update(confidence=2), ["2"]),
    ],
)
async def test_what_is_no_change_fails_the_step_and_changes_nothing(
    app: Loom, given: Any, told: list[str]
) -> None:
    outcome = await play(app, flow_of(gives(given)), Work(notes=["a"]))
    assert outcome.status == "failed" and outcome.state == Work(notes=["a"])
    assert outcome.failure is not None and outcome.failure.error == "InvalidUpdate"
    assert [value for value in told if value not in outcome.failure.message] == []


class Span(BaseModel):
    model_config = ConfigDict(frozen=True)

    first: int = 0
    last: int = Field(default=9, le=99)
    day: date = date(2026, 1, 1)
    seen: Annotated[list[date], append] = []

    @model_validator(mode="after")
    def _is_forward(self) -> "Span":
        if self.first > self.last:
            raise ValueError("first is after last")
        return self


@pytest.mark.parametrize(
    ("given", "told"),
    [({"last": 100}, "99"), ({"first": 50}, "first is after last")],
)
async def test_what_the_model_refuses_is_refused(app: Loom, given: Any, told: str) -> None:
    outcome = await play(app, Flow("span", Span).start_with(gives(given)))
    assert outcome.status == "failed" and outcome.state == Span()
    assert outcome.failure is not None and told in outcome.failure.message


async def test_values_keep_their_types(app: Loom) -> None:
    day = date(2026, 5, 1)
    seen: list[Span] = []

    async def look(state: Span, ctx: StepContext) -> None:
        seen.append(state)

    flow = Flow("span", Span).start_with(gives({"day": day, "seen": [day]})).then(look)
    outcome = await app.run(flow)
    assert outcome.state == Span(day=day, seen=[day]) == seen[0]


async def test_a_run_begins_with_a_state_of_the_flow_only(app: Loom) -> None:
    flow: Any = flow_of(note("a"))
    with pytest.raises(InvalidUpdate) as refused:
        await app.run(flow, Span())
    assert "Work" in str(refused.value)
    assert await app.runs() == []


async def test_a_step_cannot_change_the_state_behind_the_back_of_the_flow(app: Loom) -> None:
    async def scribble(state: Work, ctx: StepContext) -> None:
        state.notes.append("scribbled")
        state.counts["a"] = 1

    given = Work(notes=["a"])
    outcome = await app.run(flow_of(scribble, note("b")), given)
    assert outcome.state.notes == ["a", "b"] and outcome.state.counts == {}
    assert given.notes == ["a"]
