"""A thousand publishers at once: nothing is lost, and nothing is taken twice."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.support.boards import takings
from tests.support.pieces import Crate, Part, Plan, declare, pack
from tests.support.plays import every
from turnloom import Loom
from turnloom.board.spec import FilterConfig
from turnloom.reaction.spec import Batch
from turnloom.runtime.service.driver import FREEZE


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.repeats
async def test_a_thousand_publishers_at_once(store: str, tmp_path: Path) -> None:
    """Parts alone, each with its plan in one correlation, and pieces over all correlations."""
    pieces, size = 500, 50
    async with Loom(store="memory" if store == "memory" else str(tmp_path / "turnloom.db")) as app:
        board = app.board()
        declare(board, size)
        published = await asyncio.gather(
            *(board.publish(Part(n=n), correlation_id=f"c{n}") for n in range(pieces)),
            *(board.publish(Plan(n=n), correlation_id=f"c{n}") for n in reversed(range(pieces))),
        )
        assert len({each.id for each in published}) == 2 * pieces
        await board.run_until_idle(50)
        found = takings({run.run: list(await app.log(run.run)) for run in await app.runs()})
        assert set(found.values()) == {1}
        names = Counter(subscription for _, subscription in found)
        assert names == {"polish#1": pieces, "assemble#1": 2 * pieces, "pack#1": pieces}
        items, _ = await board.query_artifacts(FilterConfig(), embed_meta=True)
        indexed = Counter(
            (each.id, taken.subscription) for each in items for taken in each.consumptions
        )
        assert indexed == found
        crates = [each.payload["of"] for each in items if each.type == "Crate"]
        assert [len(crate) for crate in crates] == [size] * (pieces // size)
        assert sorted(n for crate in crates for n in crate) == list(range(pieces))


@pytest.mark.repeats
async def test_a_long_collecting_run_goes_on_in_another_process(tmp_path: Path) -> None:
    """Its state was kept on the way; what waited in it then is packed with what comes later."""
    for first, last in ((0, 520), (520, 600)):
        async with Loom(store=str(tmp_path / "turnloom.db")) as app:
            board = app.board()
            board.agent("pack").consumes(Part, batch=Batch(50)).publishes(Crate).with_engines(pack)
            await board.publish_many([Part(n=n) for n in range(first, last)])
            await board.run_until_idle(30)
            logs = [await app.log(each.run) for each in await app.runs()]
    [collecting] = [log for log in logs if log[0].data.collects]
    assert len(collecting) > 1.1 * FREEZE
    opened = [fact.artifacts for fact in every(collecting, "run.opened")]
    assert [len(each) for each in opened] == [50] * 12
    assert len({id for each in opened for id in each}) == 600
