"""Boards, readers and filters of every shape, from few names, so that they meet."""

from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET

from turnloom.board.spec import (
    After,
    Artifact,
    Consumption,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    TagFilter,
    Tenant,
    Visibility,
)
from turnloom.testing.contracts.artifacts.samples import NOON

SECONDS = 6

names = st.sampled_from(["a", "b", "c"])
some = st.frozensets(names, min_size=1)
any_of = st.frozensets(names)
zones = st.sampled_from([timezone(timedelta(hours=hours)) for hours in (-11, 0, 5.5, 14)])


@st.composite
def instants(draw: st.DrawFn) -> datetime:
    """Moments around noon, in any zone."""
    at = NOON + timedelta(seconds=draw(st.integers(-SECONDS, SECONDS)))
    return at.astimezone(draw(zones))


visibilities: st.SearchStrategy[Visibility] = st.recursive(
    st.just(Public())
    | st.just(Shared())
    | st.builds(Private, some)
    | st.builds(Labelled, some)
    | st.builds(Tenant, names),
    lambda inner: st.builds(After, instants(), inner),
    max_leaves=4,
)
readers = st.builds(Reader, names | st.just(""), any_of, names | st.just(""))
of_all_roles = readers | st.builds(Reader, tenant=names | st.just(""), role=st.just("developer"))
payloads = st.fixed_dictionaries(
    {},
    optional={
        "x": st.integers(0, 3) | st.booleans() | names | st.none(),
        "y": st.fixed_dictionaries({"z": st.lists(st.integers(0, 2), max_size=3)}),
    },
)


@st.composite
def artifacts(draw: st.DrawFn, id: str) -> Artifact:
    return Artifact(
        id=id,
        type=draw(names),
        payload=draw(payloads),
        produced_by=draw(names),
        created_at=draw(instants()),
        correlation_id=draw(st.none() | names),
        run=draw(st.none() | names),
        tags=draw(any_of),
        visibility=draw(visibilities),
        partition=draw(st.none() | names),
        indexed=draw(st.sampled_from([UNSET, ("x",), ("w", "x"), ("w",), ("y",)])),
    )


@st.composite
def boards(draw: st.DrawFn) -> list[Artifact]:
    return [draw(artifacts(str(n))) for n in range(draw(st.integers(0, 25)))]


@st.composite
def consumptions(draw: st.DrawFn) -> list[Consumption]:
    """Who took some of a board and some of no board, now and then the same twice."""
    taken = st.builds(
        Consumption,
        artifact=st.integers(0, 25).map(str),
        agent=names,
        subscription=names,
        run=names,
        turn=st.integers(0, 2),
        at=instants(),
    )
    return draw(st.lists(taken, max_size=25))


comparisons = st.sampled_from(["eq", "ne"])
conditions = st.one_of(
    st.tuples(st.sampled_from(["x", "y", "y.z"]), st.just("exists"), st.booleans()),
    st.tuples(st.just("x"), comparisons, st.integers(0, 3) | st.booleans() | st.none()),
    st.tuples(st.just("x"), st.sampled_from(["lt", "le", "gt", "ge"]), st.integers(0, 3) | names),
    st.tuples(st.just("y.z"), st.just("contains"), st.integers(0, 2)),
    st.tuples(st.just("x"), st.just("in"), st.lists(st.integers(0, 3) | names, max_size=2)),
)
tag_filters = st.builds(
    TagFilter, include=st.none() | any_of, exclude=any_of, match=st.sampled_from(["any", "all"])
)


@st.composite
def filters(draw: st.DrawFn) -> FilterConfig:
    """Filters that say a few things, now and then all."""
    parts: dict[str, st.SearchStrategy[Any]] = {
        "types": any_of,
        "tags": tag_filters,
        "produced_by": any_of,
        "correlation_id": names,
        "runs": any_of,
        "partition": names,
        "since": instants(),
        "until": instants(),
        "where": st.lists(conditions, max_size=2),
        "limit": st.integers(1, 6),
        "order": st.sampled_from(["created_at", "-created_at"]),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(parts)), max_size=4))
    return FilterConfig(**{name: draw(parts[name]) for name in sorted(chosen)})
