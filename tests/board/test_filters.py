"""What a filter may say, what it must not, and what each part of it does."""

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from tests.board.strategies import filters
from turnloom.adapters.memory import MemoryStore
from turnloom.board.logic.matching import matches, resolve_types
from turnloom.board.spec import FilterConfig, TagFilter, TypeRegistry
from turnloom.errors import UnknownType, UsageError
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND, artifact, ids
from turnloom.testing.contracts.facts import TENANT

SUBJECT = artifact(
    "a",
    payload={"score": 3},
    correlation_id="c",
    run="r",
    tags={"x", "y"},
    partition="p",
)


async def test_each_field_of_a_filter_makes_a_difference() -> None:
    """What it takes to be found, and what does not do."""
    right: dict[str, tuple[Any, Any]] = {
        "types": ({"test.Note"}, {"test.Other"}),
        "tags": (TagFilter(include={"x"}), TagFilter(include={"z"})),
        "produced_by": ({"ann", "bob"}, {"bob"}),
        "correlation_id": ("c", "d"),
        "runs": ({"r"}, {"s"}),
        "partition": ("p", "q"),
        "since": (NOON, NOON + SECOND),
        "until": (NOON, NOON - SECOND),
        "where": ([("score", "ge", 3)], [("score", "gt", 3)]),
    }
    for field, (fits, fails) in right.items():
        assert matches(FilterConfig(**{field: fits}), SUBJECT), field
        assert not matches(FilterConfig(**{field: fails}), SUBJECT), field
    store = MemoryStore(CODEC).artifacts
    await store.put(TENANT, [SUBJECT, artifact("b")])
    assert {*right, "limit", "order"} == set(FilterConfig.model_fields)
    assert await ids(store, limit=1) == ["a"]
    assert await ids(store, order="-created_at") == ["b", "a"]


def test_each_field_of_a_tag_filter_makes_a_difference() -> None:
    for tags, found in (
        (TagFilter(include={"x", "z"}), True),
        (TagFilter(include={"x", "z"}, match="all"), False),
        (TagFilter(exclude={"y"}), False),
        (TagFilter(exclude={"z"}), True),
    ):
        assert matches(FilterConfig(tags=tags), SUBJECT) is found


@given(filters())
def test_a_filter_survives_being_written_down(filter: FilterConfig) -> None:
    assert FilterConfig.model_validate(filter.model_dump(mode="json")) == filter
    assert FilterConfig.model_validate_json(filter.model_dump_json()) == filter


def test_a_filter_as_a_file_says_it() -> None:
    said = {
        "types": ["Pitch"],
        "tags": {"include": ["won"], "match": "all"},
        "since": "2026-01-31T13:00:00+01:00",
        "where": [["price.amount", "ge", 10]],
        "order": "-created_at",
    }
    assert FilterConfig.model_validate(said) == FilterConfig(
        types={"Pitch"},
        tags=TagFilter(include={"won"}, match="all"),
        since=NOON,
        where=[("price.amount", "ge", 10)],
        order="-created_at",
    )


@pytest.mark.parametrize(
    "said",
    [
        {"since": NOON.replace(tzinfo=None)},
        {"until": "2026-01-31T12:00:00"},
        {"until": "noon"},
        {"since": 5},
        {"types": "Pitch"},
        {"types": [5]},
        {"limit": 0},
        {"limit": True},
        {"order": "created"},
        {"colour": "red"},
        {"tags": {"match": "some"}},
        {"tags": ["won"]},
        {"where": [("a", "like", "b")]},
        {"where": [("a", "eq")]},
        {"where": [("", "eq", 1)]},
        {"where": [("a..b", "eq", 1)]},
        {"where": [("a", "in", 1)]},
        {"where": [("a", "exists", "yes")]},
        {"where": [("a", "lt", None)]},
        {"where": [("a", "eq", NOON)]},
        {"where": [("a", "eq", b"x")]},
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        FilterConfig.model_validate(said)
    assert {each["loc"][0] for each in refused.value.errors()} == said.keys()
    with pytest.raises(UsageError):
        FilterConfig(**said)


def test_types_are_asked_for_by_names_that_are_known() -> None:
    types = TypeRegistry()
    assert resolve_types(FilterConfig(), types) == FilterConfig()
    assert resolve_types(FilterConfig(types=set()), types).types == frozenset()
    with pytest.raises(UnknownType, match="'Pitch'"):
        resolve_types(FilterConfig(types={"Pitch"}), types)
