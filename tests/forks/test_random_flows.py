"""Random flows, forked at every event: they end as their originals did, and nothing is done."""

from collections.abc import Sequence

import pytest
from hypothesis import settings

from tests.flow.ledgers import Trip, travel
from tests.flow.test_retry_trees import Grown, trees
from tests.support.forking import cuts
from turnloom import Loom
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec


async def check(choices: Sequence[int], chosen: int) -> None:
    """Fork a flow in which some steps fail, each time."""
    store = MemoryStore(codec())
    async with Loom(store=store) as app:
        first = Grown(choices)
        await travel(await app.start(first.flow(), Trip()))
        grown = Grown(choices)
        flow = grown.flow()
        grown.traps = dict.fromkeys([*first.labels][chosen % 5 :: 5][: chosen % 3], 10**6)
        run = await app.start(flow, Trip())
        outcome, events = await travel(run), await app.history.events(run.id)
        before = [*grown.ledger.entries]
        for at in await cuts(store, [*events]):
            fork = await run.fork(at, tools="recorded")
            again = await travel(fork)
            assert (again.status, again.state) == (outcome.status, outcome.state), at
        assert grown.ledger.entries == before


@pytest.mark.doors
@trees
@settings(max_examples=60, deadline=None)
async def test_random_flows(choices: list[int], chosen: int) -> None:
    await check(choices, chosen)
