"""Hundreds of publishers at once: nothing is lost, and nothing is taken twice."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.support.boards import Place, begin_process, serving, takings
from tests.support.pieces import Crate, Part, Plan, declare, pack
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import Batch, FilterConfig, Loom
from turnloom.log.spec import RunKey


@pytest.mark.parametrize(("store", "pieces"), [("memory", 400), ("turnloom.db", 100)])
@pytest.mark.repeats
@pytest.mark.doors
async def test_a_crowd_of_publishers(store: str, pieces: int, tmp_path: Path) -> None:
    """Parts alone, each with its plan in one correlation, and pieces over all correlations."""
    size = pieces // 10
    async with Loom(store="memory" if store == "memory" else str(tmp_path / store)) as app:
        board = app.board()
        declare(board, size)
        published = await asyncio.gather(
            *(board.publish(Part(n=n), correlation_id=f"c{n}") for n in range(pieces)),
            *(board.publish(Plan(n=n), correlation_id=f"c{n}") for n in reversed(range(pieces))),
        )
        assert len({each.id for each in published}) == 2 * pieces
        await board.run_until_idle(PATIENCE)
        found = takings(
            {run.run: list(await app.history.events(run.run)) for run in await app.runs()}
        )
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
@pytest.mark.doors
async def test_a_long_collecting_run_goes_on_in_another_process() -> None:
    """Its state was kept on the way; what waited in it then is packed with what comes later."""
    place = Place()
    for first, last in ((0, 520), (520, 600)):
        async with serving(begin_process(place)) as board:
            board.agent("pack").consumes(Part, batch=Batch(50)).publishes(Crate).with_engines(pack)
            await board.publish_many([Part(n=n) for n in range(first, last)])
            await board.run_until_idle(PATIENCE)
    [collecting] = [log for log in (await place.logs()).values() if log[0].data.collects]
    kept = await place.store.snapshots.load(RunKey("local", collecting[0].run))
    assert kept is not None and 0 < kept[0] < len(collecting)
    opened = [fact.artifacts for fact in every(collecting, "run.opened")]
    assert [len(each) for each in opened] == [50] * 12
    assert len({id for each in opened for id in each}) == 600
