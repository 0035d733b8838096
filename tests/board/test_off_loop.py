"""What reads many artifacts leaves the loop to others."""

import asyncio
import threading
from typing import Any

from turnloom.adapters.memory.index import STRIDE, MemoryIndex
from turnloom.board.logic.rows import rows_of
from turnloom.board.service import IndexReader, reading
from turnloom.board.spec import FilterConfig, TagFilter
from turnloom.board.spec.queries import IndexPlan, IndexStretch, StoredArtifact
from turnloom.testing.contracts.artifacts.samples import ANN, LATER, series
from turnloom.testing.contracts.facts import TENANT

MANY = 3 * reading.FEW


class NotingIndex(MemoryIndex):
    """An index that notes in which threads its rows are read."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        noted = self.threads

        class Row(StoredArtifact):
            def __getattribute__(self, name: str) -> Any:
                if name == "data":
                    noted.append(threading.get_ident())
                return super().__getattribute__(name)

        stretch = await super().walk(plan, most)
        return stretch._replace(rows=[Row(*row) for row in stretch.rows])


async def test_many_artifacts_are_read_in_threads() -> None:
    index = NotingIndex()
    index.keep(TENANT, rows_of(TENANT, series(MANY)))
    here = IndexReader(index, ANN, LATER)
    nothing = FilterConfig(where=[("id", "eq", "unknown")])
    page = await here.query(nothing, None, True, False)
    assert (page.items, page.total) == ((), 0)
    assert (await here.summary(nothing)).total == 0
    assert len(index.threads) == 3 * MANY
    assert threading.get_ident() not in index.threads


async def test_a_few_are_read_at_once() -> None:
    index = NotingIndex()
    index.keep(TENANT, rows_of(TENANT, series(reading.FEW)))
    page = await IndexReader(index, ANN, LATER).query(FilterConfig(), None, False, False)
    assert len(page.items) == reading.FEW
    assert set(index.threads) == {threading.get_ident()}


async def test_other_tasks_run_while_an_index_in_memory_is_looked_through() -> None:
    index = MemoryIndex()
    rows = series(3 * STRIDE, tags={"t"})
    index.keep(TENANT, rows_of(TENANT, rows))
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count_turns())
    here = IndexReader(index, ANN, LATER)
    never = FilterConfig(types={"test.Note"}, tags=TagFilter(exclude={"t"}), limit=5)
    for ask in (
        lambda: here.query(never, None, False, False),
        lambda: here.query(FilterConfig(limit=1), None, True, False),
    ):
        before = turns
        await ask()
        assert turns - before >= 3
    other.cancel()
