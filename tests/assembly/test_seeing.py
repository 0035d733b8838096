"""Whatever providers are put together, no item shows what its reader may not see."""

from copy import deepcopy
from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assembly.boards import Turn
from tests.board.strategies import boards, filters, instants, readers
from turnloom import (
    CompositeProvider,
    ContextProvider,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilteredContextProvider,
    RedactingProvider,
    StateDelegatingProvider,
    SummaryProvider,
    TranscriptProvider,
)
from turnloom.assembly.events import ContextGathered
from turnloom.assembly.logic.slices import gathered_fact
from turnloom.board.logic.matching import may_see
from turnloom.board.spec import Artifact, FilterConfig, Reader
from turnloom.errors import ContextUnavailable

EVERY = [str(n) for n in range(25)]


class Greedy:
    """Takes all that it can get in every way there is, and keeps it for others."""

    def __init__(self, forges: bool) -> None:
        self.forges = forges
        self.kept: list[dict[str, Any]] = []

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        found, _ = await request.board.query_artifacts(FilterConfig(limit=2))
        more, _ = await request.board.query_artifacts(FilterConfig(limit=2), cursor=found.cursor)
        asked = [await request.board.get(id) for id in EVERY]
        for each in (*found, *more, *filter(None, asked)):
            payload = {"secret": "mine", **each.payload}
            self.kept.append({"type": each.type, "payload": payload, "artifact_id": each.id})
        theirs = await DefaultCorrelationProvider()(request)
        for item in theirs.items:
            item["payload"].clear()
        return ContextSlice(items=[*self.kept, *theirs.items, *self.forged()])

    def forged(self) -> list[dict[str, Any]]:
        return [{"artifact_id": "3", "payload": {}}] if self.forges else []


def told(item: dict[str, Any]) -> str:
    return f"{item.get('type')}: {item.get('payload')}"


leaves = st.one_of(
    st.builds(DefaultCorrelationProvider, st.none() | st.integers(1, 4)),
    st.builds(FilteredContextProvider, filters(), st.none() | st.integers(1, 4)),
    st.builds(FilteredContextProvider, include_state_keys=st.just({"note"})),
    st.builds(StateDelegatingProvider),
    st.builds(TranscriptProvider, st.none() | st.integers(1, 2)),
    st.builds(Greedy, st.booleans()),
)
providers: st.SearchStrategy[ContextProvider] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda some: CompositeProvider(*some)),
        st.builds(RedactingProvider, inner, st.sampled_from([["x"], ["**.z"], ["y.*"]])),
        st.builds(SummaryProvider, inner, st.just(told)),
    ),
    max_leaves=5,
)


def turn(board: list[Artifact], reader: Reader, now: datetime) -> Turn:
    visible = [each for each in board if may_see(each.visibility, reader, now)]
    return Turn(
        board,
        reader=reader,
        now=now,
        correlation_id="a",
        inputs=tuple(visible[:2]),
        state={"note": [1], "context_snapshot": [{"artifact_id": "0"}, {"payload": {"x": 1}}]},
        messages=[("A", "hi"), ("B", "ho")],
    )


async def gathered(each: Turn, provider: ContextProvider) -> ContextGathered | None:
    """The fact of what was gathered; nothing if it was refused."""
    try:
        return gathered_fact(await each.gather(provider), {})
    except ContextUnavailable:
        return None


@settings(max_examples=60)
@given(boards(), providers, st.lists(readers, min_size=1, max_size=3), instants())
async def test_no_item_shows_what_its_reader_may_not_see(
    board: list[Artifact], provider: ContextProvider, some: list[Reader], now: datetime
) -> None:
    by_id = {each.id: each for each in board}
    for reader in some:
        fact = await gathered(turn(board, reader, now), provider)
        for item in fact.items if fact else ():
            assert not item.artifact or may_see(by_id[item.artifact].visibility, reader, now)
            assert item.provider.partition("/")[0] == type(provider).__name__


def timeless(fact: ContextGathered | None) -> Any:
    if fact is None:
        return None
    calls = [(call.provider, call.items, call.error) for call in fact.calls]
    return fact.items, fact.inputs, fact.metadata, calls


@settings(max_examples=40)
@given(boards(), providers, readers, instants())
async def test_the_same_board_and_request_give_the_same_bytes(
    board: list[Artifact], provider: ContextProvider, reader: Reader, now: datetime
) -> None:
    alike = deepcopy(provider)
    one = await gathered(turn(board, reader, now), provider)
    two = await gathered(turn(board, reader, now), alike)
    assert timeless(one) == timeless(two)


@settings(max_examples=40)
@given(boards(), filters(), readers, instants(), st.integers(1, 5))
async def test_what_is_hidden_takes_no_place(
    board: list[Artifact], filter: FilterConfig, reader: Reader, now: datetime, limit: int
) -> None:
    visible = [each for each in board if may_see(each.visibility, reader, now)]
    for provider in (
        FilteredContextProvider(filter, limit),
        DefaultCorrelationProvider(limit),
        RedactingProvider(DefaultCorrelationProvider(), ["x"]),
    ):
        one = await gathered(turn(board, reader, now), provider)
        two = await gathered(turn(visible, reader, now), provider)
        assert timeless(one) == timeless(two)
