"""Contracts of artifact stores: indexed fields change how artifacts are found, never which ones."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import FilterConfig, Private, TagFilter
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    NOON,
    SECOND,
    artifact,
    ids,
    pages,
)
from turnloom.testing.contracts.facts import TENANT

# Each tuple has the values that are equal in JSON; values of different tuples are not equal.
VALUES: tuple[tuple[Any, ...], ...] = (
    *((1, 1.0), (0, -0.0), (2**53 + 1,), (2**70, float(2**70)), (0.1,), (True,), (False,)),
    *((None,), ("1",), ("True",), ("",), ("走る \0 \U0001f600",), ("x" * 5000,)),
)


class IndexingContract:
    """Queries by indexed fields."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_a_value_is_found_by_all_that_equal_it(self) -> None:
        """An indexed value is compared as JSON: 1 equals 1.0, but not true."""
        async with self.fresh() as store:
            for place, (value, *_) in enumerate(VALUES):
                payload = {"n": value, "list": [value]}
                await store.put(TENANT, [artifact(f"{place}", payload=payload, indexed=("n",))])
            for place, same in enumerate(VALUES):
                for value in same:
                    found = await ids(store, types={"test.Note"}, where=[("n", "eq", value)])
                    assert found == [f"{place}"], value
            some = [("n", "in", [1.0, "1", None, "elsewhere"])]
            assert await ids(store, types={"test.Note"}, where=some) == ["0", "7", "8"]
            mixed = [("n", "in", [1.0, [1]])]
            assert await ids(store, types={"test.Note"}, where=mixed) == ["0"]
            whole = [("list", "eq", ["1"])]
            assert await ids(store, types={"test.Note"}, where=whole) == ["8"]

    async def test_a_declaration_may_come_late_and_change(self) -> None:
        """A query also finds artifacts that were stored with other indexed fields, or with none."""
        async with self.fresh() as store:
            for place, indexed in enumerate([None, ("n",), ("m",), ("m", "n"), ("gone",)]):
                more: dict[str, Any] = {"indexed": indexed} if indexed else {}
                for n in range(2):
                    payload, at = {"n": n, "m": "x", "deep": {"n": n}}, NOON + place * SECOND
                    made = artifact(f"{place}.{n}", payload=payload, created_at=at, **more)
                    await store.put(TENANT, [made])
            ones = ["0.1", "1.1", "2.1", "3.1", "4.1"]
            for where in ([("n", "eq", 1)], [("n", "eq", 1), ("m", "eq", "x")], [("n", "ne", 0)]):
                for types in ({"test.Note"}, {"test.Note", "test.Other"}, None):
                    assert await ids(store, types=types, where=where) == ones, where
            deep = [("deep.n", "eq", 1), ("m", "in", ["x", "y"])]
            assert await ids(store, types={"test.Note"}, where=deep) == ones
            last = FilterConfig(
                types={"test.Note"}, where=[("n", "eq", 1)], limit=2, order="-created_at"
            )
            assert await pages(store, last) == [["4.1", "3.1"], ["2.1", "1.1"], ["0.1"]]
            assert await ids(store, types={"test.Note"}) == await ids(store)
            assert await ids(store, types={"test.Other"}, where=[("n", "eq", 1)]) == []
            assert await ids(store, types=set(), where=[("n", "eq", 1)]) == []

    async def test_an_index_shows_nothing_that_is_hidden(self) -> None:
        """A query by an indexed field finds only artifacts that the reader may see."""
        async with self.fresh() as store:
            fields: dict[str, Any] = {"payload": {"n": 1}, "indexed": ("n",)}
            await store.put(
                TENANT,
                [
                    artifact("a", **fields, tags={"t"}),
                    artifact("b", **fields, visibility=Private({"bob"})),
                    artifact("c", **fields, visibility=Private({"ann"}), tags={"t"}),
                ],
            )
            await store.put("globex", [artifact("d", **fields)])
            asked: dict[str, Any] = {"types": {"test.Note"}, "where": [("n", "eq", 1)]}
            assert await ids(store, ANN, **asked) == ["a", "c"]
            assert await ids(store, BOB, **asked) == ["a", "b"]
            assert await ids(store, ANN, **asked, tags=TagFilter(include={"t"})) == ["a", "c"]
            assert await ids(store, ANN, **asked, tags=TagFilter(exclude={"t"})) == []

    async def test_indexed_fields_are_not_content(self) -> None:
        """Indexed fields are not content: the same artifact with other ones is a repetition."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a", payload={"n": 1})])
            await store.put(TENANT, [artifact("a", payload={"n": 1}, indexed=("n",))])
            assert await ids(store, types={"test.Note"}, where=[("n", "eq", 1)]) == ["a"]
