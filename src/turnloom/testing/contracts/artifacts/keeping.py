"""What is put comes back, once and unchanged."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import anyio

from turnloom.board.logic.rows import read_artifact, read_visibility
from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import After, FilterConfig, Labelled, Tenant
from turnloom.errors import ArtifactExists, InvalidArtifact
from turnloom.testing.contracts.artifacts.samples import ANN, EVERYTHING, LATER, NOON, artifact, ids
from turnloom.testing.contracts.facts import TENANT, refused


class KeepingContract:
    """How artifacts are kept."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty store of artifacts."""
        raise NotImplementedError

    async def test_what_is_put_comes_back(self) -> None:
        """An artifact comes back equal, with everything that it says."""
        whole = artifact(
            "whole",
            payload=EVERYTHING,
            created_at=NOON + timedelta(microseconds=1),
            correlation_id="order-42",
            run="run/1",
            parents=("b", "a"),
            tags={"x", "y"},
            visibility=After(NOON, Labelled({"staff"})),
            partition="eu",
            version=3,
        )
        async with self.fresh() as store:
            await store.put(TENANT, [whole, artifact("plain")])
            assert await store.get("whole", ANN, LATER) == whole
            assert await store.get("plain", ANN, LATER) == artifact("plain")
            for missing in ("other", "Whole", "", "a\0", "\ud800"):
                assert await store.get(missing, ANN, LATER) is None

    async def test_whoever_publishes_finds_what_is_there(self) -> None:
        """The row of an artifact is found whoever may see it, and holds all that it says."""
        hidden = artifact("a", tags={"t"}, visibility=After(LATER, Tenant("acme")))
        async with self.fresh() as store:
            await store.put(TENANT, [hidden])
            [found] = await store.find(TENANT, "a")
            assert not await store.find(TENANT, "b")
            visibility = read_visibility(found.visibility)
            assert visibility and read_artifact(visibility, found.data) == hidden

    async def test_an_empty_board(self) -> None:
        """Where nothing was put, nothing is found."""
        async with self.fresh() as store:
            await store.put(TENANT, [])
            assert await ids(store) == []
            assert await ids(store, types={"test.Note"}, produced_by={"ann"}) == []
            assert list(await store.upcoming(TENANT, NOON, 5)) == []

    async def test_the_same_again_changes_nothing(self) -> None:
        """One id and the same content is kept once, as it was first, however often it is put."""
        async with self.fresh() as store:
            first = artifact("a", payload={"x": 1, "y": 2}, tags={"p", "q"})
            again = artifact("a", payload={"y": 2, "x": 1}, tags={"q", "p"}, created_at=LATER)
            await store.put(TENANT, [first, first])
            await store.put(TENANT, [again, artifact("b")])
            assert await ids(store) == ["a", "b"]
            assert await store.get("a", ANN, LATER) == first

    async def test_other_content_is_refused(self) -> None:
        """An artifact never changes, and what comes with a refused one is refused too."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a", payload={"x": 1})])
            others: list[dict[str, Any]] = [
                *({"payload": {"x": value}} for value in (2, 1.0, True, "1")),
                *({"type": "test.Other"}, {"produced_by": "bob"}, {"tags": {"t"}}),
                *({"correlation_id": "c"}, {"run": "r"}, {"parents": ("p",)}, {"version": 2}),
                *({"partition": "p"}, {"visibility": Tenant("acme")}),
            ]
            for n, other in enumerate(others):
                changed = artifact("a", **{"payload": {"x": 1}, **other})
                with refused(ArtifactExists):
                    await store.put(
                        TENANT, [artifact(f"before {n}"), changed, artifact(f"behind {n}")]
                    )
            with refused(ArtifactExists):
                await store.put(TENANT, [artifact("b"), artifact("b", version=2)])
            assert await ids(store) == ["a"]
            assert await store.get("a", ANN, LATER) == artifact("a", payload={"x": 1})

    async def test_what_is_no_json_is_refused(self) -> None:
        """A payload that would come back as something else is not kept."""
        bad: list[Any] = [
            float("nan"),
            float("inf"),
            (1, 2),
            {1: "x"},
            {1, 2},
            NOON,
            b"x",
            "\ud800",
        ]
        async with self.fresh() as store:
            for value in (*bad, object()):
                with refused(InvalidArtifact):
                    await store.put(
                        TENANT, [artifact("good"), artifact("bad", payload={"x": value})]
                    )
            with refused(InvalidArtifact):
                await store.put(TENANT, [artifact("bad", correlation_id=5)])
            assert await ids(store) == []

    async def test_readers_get_copies(self) -> None:
        """Neither what was given nor what was got is what is kept."""
        async with self.fresh() as store:
            given = artifact("a", payload={"list": [1]})
            await store.put(TENANT, [given])
            given.payload["list"].append(2)
            got = await store.get("a", ANN, LATER)
            assert got is not None and got.payload == {"list": [1]}
            got.payload["list"].append(3)
            page = await store.query(FilterConfig(), ANN, LATER)
            page.items[0].payload.clear()
            assert await store.get("a", ANN, LATER) == artifact("a", payload={"list": [1]})

    async def test_many_publishers_at_once(self) -> None:
        """Nothing is lost, and each publisher's artifacts stay in their order."""
        async with self.fresh() as store:

            async def publish(name: str) -> None:
                for n in range(10):
                    await store.put(
                        TENANT, [artifact(f"{name}{n}", produced_by=name), artifact("shared")]
                    )

            async with anyio.create_task_group() as tasks:
                for name in "xyz":
                    tasks.start_soon(publish, name)
            assert len(await ids(store)) == 31
            for name in "xyz":
                assert await ids(store, produced_by={name}) == [f"{name}{n}" for n in range(10)]

    async def test_two_who_put_the_same(self) -> None:
        """The same artifacts in another order at the same moment are kept once."""
        async with self.fresh() as store:
            batch = [artifact(str(n)) for n in range(20)]
            async with anyio.create_task_group() as tasks:
                for some in (batch, batch[::-1], batch[10:] + batch[:10]):
                    tasks.start_soon(store.put, TENANT, some)
            assert sorted(await ids(store)) == sorted(item.id for item in batch)
