"""What reads many artifacts leaves the loop to others."""

import threading
from collections.abc import Sequence
from typing import Any

from turnloom.adapters.memory.index import MemoryIndex
from turnloom.board.logic.rows import rows_of
from turnloom.board.service import IndexReader, reading
from turnloom.board.spec import FilterConfig
from turnloom.board.spec.queries import IndexPlan, StoredArtifact
from turnloom.testing.contracts.artifacts.samples import ANN, LATER, series
from turnloom.testing.contracts.facts import TENANT

MANY = 3 * reading.FEW


class NotingIndex(MemoryIndex):
    """An index that notes in which threads its rows are read."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    async def walk(self, plan: IndexPlan, most: int) -> Sequence[StoredArtifact]:
        noted = self.threads

        class Row(StoredArtifact):
            def __getattribute__(self, name: str) -> Any:
                if name == "data":
                    noted.append(threading.get_ident())
                return super().__getattribute__(name)

        return [Row(*row) for row in await super().walk(plan, most)]


async def test_many_artifacts_are_read_in_threads() -> None:
    index = NotingIndex()
    index.keep(TENANT, rows_of(TENANT, series(MANY)))
    here = IndexReader(index, ANN, LATER)
    nothing = FilterConfig(where=[("id", "eq", "unknown")])
    page = await here.query(nothing, None, True, False)
    assert (page.items, page.total) == ((), 0)
    assert (await here.summary(FilterConfig())).total == MANY
    assert len(index.threads) == 3 * MANY
    assert threading.get_ident() not in index.threads


async def test_a_few_are_read_at_once() -> None:
    index = NotingIndex()
    index.keep(TENANT, rows_of(TENANT, series(reading.FEW)))
    await IndexReader(index, ANN, LATER).summary(FilterConfig())
    assert set(index.threads) == {threading.get_ident()}
