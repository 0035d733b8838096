"""Contracts of artifact stores: put, consume, and follow the log."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import anyio

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.logic.rows import read_artifact, read_visibility
from turnloom.board.ports import ArtifactStore
from turnloom.board.service import rebuild
from turnloom.board.spec import (
    After,
    Artifact,
    BoardSummary,
    Envelope,
    FilterConfig,
    Labelled,
    Private,
    Reader,
    Tenant,
)
from turnloom.errors import ArtifactExists, Conflict, InvalidArtifact
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, Fact
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    EVERYTHING,
    HOSTILE,
    LATER,
    NOON,
    SECOND,
    artifact,
    consumption,
    ids,
    series,
)
from turnloom.testing.contracts.facts import TENANT, Noted, event, key, refused


class ArtifactStorageContract:
    """Storage of artifacts."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_every_field_is_returned(self) -> None:
        """An artifact is returned with all of its fields."""
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

    async def test_find_ignores_visibility(self) -> None:
        """`find` returns the whole row of an artifact, regardless of visibility."""
        hidden = artifact("a", tags={"t"}, visibility=After(LATER, Tenant("acme")))
        async with self.fresh() as store:
            await store.put(TENANT, [hidden])
            [found] = await store.find(TENANT, "a")
            assert not await store.find(TENANT, "b")
            visibility = read_visibility(found.visibility)
            assert visibility and read_artifact(visibility, found.data) == hidden

    async def test_an_empty_board(self) -> None:
        """An empty store finds nothing."""
        async with self.fresh() as store:
            await store.put(TENANT, [])
            assert await ids(store) == []
            assert await ids(store, types={"test.Note"}, produced_by={"ann"}) == []
            assert list(await store.upcoming(TENANT, NOON, 5)) == []

    async def test_the_same_again_changes_nothing(self) -> None:
        """An artifact that is put again with the same content is stored once, as it was first."""
        async with self.fresh() as store:
            first = artifact("a", payload={"x": 1, "y": 2}, tags={"p", "q"})
            again = artifact("a", payload={"y": 2, "x": 1}, tags={"q", "p"}, created_at=LATER)
            await store.put(TENANT, [first, first])
            await store.put(TENANT, [again, artifact("b")])
            assert await ids(store) == ["a", "b"]
            assert await store.get("a", ANN, LATER) == first

    async def test_other_content_is_refused(self) -> None:
        """An artifact never changes: other content under its id is rejected, with the whole
        batch."""
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

    async def test_a_payload_that_is_not_json_is_refused(self) -> None:
        """A payload that would not survive JSON is rejected."""
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
        """Changes to the stored and the returned objects do not reach the store."""
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
        """Concurrent publishers lose nothing, and each one's artifacts stay in order."""
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

    async def test_concurrent_puts_of_the_same(self) -> None:
        """The same artifacts, put concurrently in different orders, are stored once."""
        async with self.fresh() as store:
            batch = [artifact(str(n)) for n in range(20)]
            async with anyio.create_task_group() as tasks:
                for some in (batch, batch[::-1], batch[10:] + batch[:10]):
                    tasks.start_soon(store.put, TENANT, some)
            assert sorted(await ids(store)) == sorted(item.id for item in batch)


class ConsumptionsContract:
    """Storage of consumptions."""

    def fresh(self) -> AbstractAsyncContextManager[ArtifactStore]:
        """An empty artifact store."""
        raise NotImplementedError

    async def test_envelopes_have_consumptions(self) -> None:
        """An envelope has all fields of its artifact, and its consumptions, oldest first."""
        async with self.fresh() as store:
            await store.put(
                TENANT, [artifact("a", tags={"t"}, run="r"), artifact("b"), artifact("c")]
            )
            late = consumption("a", at=LATER, turn=1)
            first = consumption("a", at=NOON, turn=2)
            await store.consume(TENANT, [late, first])
            await store.consume(TENANT, [consumption("c", agent="bob", subscription="bob/0")])
            a, b, c = await envelopes(store)
            assert plain(a) == artifact("a", tags={"t"}, run="r")
            assert a.consumptions == (first, late)
            assert b.consumptions == ()
            assert c.consumptions == (consumption("c", agent="bob", subscription="bob/0"),)
            page = await store.query(FilterConfig(), ANN, LATER)
            assert [type(item) for item in page.items] == [Artifact] * 3
            assert await store.get("a", ANN, LATER) == plain(a)

    async def test_the_order_within_an_instant_is_stable(self) -> None:
        """Consumptions of the same instant are sorted by run, turn and subscription."""
        several = [
            consumption("a", run=run, turn=turn, subscription=subscription)
            for run in ("B", "a", "b", "é")
            for turn in (2, 10)
            for subscription in ("p", "q")
        ]
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            await store.consume(TENANT, several[::-2])
            await store.consume(TENANT, several)
            [found] = await envelopes(store)
            assert list(found.consumptions) == several

    async def test_a_repeated_consumption_changes_nothing(self) -> None:
        """A repeated consumption by the same subscription, turn and run is ignored."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            await store.consume(TENANT, [])
            await store.consume(TENANT, [consumption("a"), consumption("a", at=LATER)])
            await store.consume(TENANT, [consumption("a", at=LATER), consumption("a", turn=2)])
            [found] = await envelopes(store)
            assert found.consumptions == (consumption("a"), consumption("a", turn=2))

    async def test_a_consumption_before_its_artifact(self) -> None:
        """A consumption may be stored before its artifact."""
        async with self.fresh() as store:
            await store.consume(TENANT, [consumption("a"), consumption("never")])
            await store.put(TENANT, [artifact("a")])
            [found] = await envelopes(store)
            assert found.consumptions == (consumption("a"),)

    async def test_consumptions_of_invisible_artifacts_are_invisible(self) -> None:
        """Consumptions of invisible artifacts are invisible."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a"), artifact("b", visibility=Private({"bob"}))])
            await store.consume(TENANT, [consumption("a"), consumption("b")])
            assert [item.id for item in await envelopes(store)] == ["a"]
            assert [len(item.consumptions) for item in await envelopes(store, BOB)] == [1, 1]

    async def test_pages_of_envelopes(self) -> None:
        """A page of envelopes has the total and the cursor of a plain page, and its own
        consumptions."""
        async with self.fresh() as store:
            await store.put(TENANT, series(5))
            await store.consume(TENANT, [consumption(str(n)) for n in range(5)])
            found, cursor = list[Envelope](), None
            filter = FilterConfig(limit=2, order="-created_at")
            for size in (2, 2, 1):
                items, cursor = await _page(store, filter, cursor)
                assert len(items) == size
                found += items
            assert cursor is None
            assert [item.consumptions[0].artifact for item in found] == ["4", "3", "2", "1", "0"]

    async def test_any_name_and_any_number(self) -> None:
        """Any string is a valid name, and a page may have thousands of envelopes."""
        async with self.fresh() as store:
            odd = [
                consumption(name, agent=name, subscription=name, run=name, turn=n)
                for n, name in enumerate(HOSTILE)
            ]
            await store.put(TENANT, [artifact(name) for name in HOSTILE])
            await store.put(
                TENANT, [artifact(f"{n}", created_at=NOON + SECOND) for n in range(3000)]
            )
            await store.consume(TENANT, [*odd, *(consumption(f"{n}") for n in range(3000))])
            found = await envelopes(store)
            assert [item.consumptions for item in found[: len(odd)]] == [(each,) for each in odd]
            assert all(len(item.consumptions) == 1 for item in found)

    async def test_concurrent_consumptions_of_the_same(self) -> None:
        """The same consumptions, added concurrently in different orders, are stored once."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            taken = [consumption("a", turn=turn) for turn in range(20)]
            async with anyio.create_task_group() as tasks:
                for some in (taken, taken[::-1], taken[10:] + taken[:10]):
                    tasks.start_soon(store.consume, TENANT, some)
            [found] = await envelopes(store)
            assert list(found.consumptions) == taken

    async def test_an_envelope_is_not_put(self) -> None:
        """An envelope is not an artifact: it cannot be put."""
        async with self.fresh() as store:
            await store.put(TENANT, [artifact("a")])
            [found] = await envelopes(store)
            with refused(InvalidArtifact):
                await store.put(TENANT, [found])


async def envelopes(store: ArtifactStore, reader: Reader = ANN) -> Sequence[Envelope]:
    """The envelopes that a reader sees."""
    page = await store.query(FilterConfig(), reader, LATER, embed_meta=True)
    return [item for item in page.items if isinstance(item, Envelope)]


def plain(envelope: Envelope) -> Artifact:
    """The artifact in an envelope."""
    return Artifact(**{name: getattr(envelope, name) for name in Artifact.__struct_fields__})


async def _page(
    store: ArtifactStore, filter: FilterConfig, cursor: str | None
) -> tuple[list[Envelope], str | None]:
    """The envelopes and the cursor of a page; checks them against the page without envelopes."""
    page = await store.query(filter, ANN, LATER, cursor=cursor, count=True)
    same = await store.query(filter, ANN, LATER, cursor=cursor, count=True, embed_meta=True)
    items = [item for item in same.items if isinstance(item, Envelope)]
    assert list(map(plain, items)) == list(page.items)
    assert (same.total, same.cursor) == (page.total, page.cursor)
    return items, same.cursor


class FollowingContract:
    """The suite for a log and an artifact store that follows it."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[EventLog, ArtifactStore]]:
        """An empty log, and the artifact store that follows it."""
        raise NotImplementedError

    async def test_artifacts_follow_their_events(self) -> None:
        """Artifacts and consumptions are stored with their events."""
        async with self.fresh() as (log, store):
            assert store.follows_log
            await log.append(key("r"), batch("r", published("a"), Noted("x"), published("b")), 0)
            assert await ids(store) == ["a", "b"]
            await log.append(key("r"), batch("r", consumed("a", "b"), after=3), 3)
            [a, b] = await envelopes(store)
            [taking] = a.consumptions
            assert (taking.agent, taking.subscription) == ("bob", "bob/0")
            assert (taking.run, taking.turn, taking.at) == ("r", 2, event("r", 4).at)
            assert len(b.consumptions) == 1

    async def test_a_consumption_by_another_run(self) -> None:
        """A consumption belongs to the run that its event names, or to the run of the event."""
        async with self.fresh() as (log, store):
            taking = consumed("a", run="other")
            await log.append(key("r"), batch("r", published("a"), taking), 0)
            [found] = await envelopes(store)
            assert [each.run for each in found.consumptions] == ["other"]

    async def test_a_batch_again_changes_nothing(self) -> None:
        """A repeated batch returns the stored events and changes no artifact."""
        async with self.fresh() as (log, store):
            stored = batch("r", published("a"), consumed("a"))
            await log.append(key("r"), stored, 0)
            before = await envelopes(store)
            assert list(await log.append(key("r"), stored, 0)) == stored
            assert await envelopes(store) == before

    async def test_other_content_is_refused_with_all_that_comes_with_it(self) -> None:
        """A batch with other content for an existing artifact is rejected by both log and store."""
        async with self.fresh() as (log, store):
            await log.append(key("r"), batch("r", published("a")), 0)
            mixed = (Noted("x"), published("b"), published("a", version=2), consumed("a"))
            for run, position in (("other", 0), ("r", 1)):
                with refused(ArtifactExists):
                    await log.append(key(run), batch(run, *mixed, after=position), position)
            with refused(ArtifactExists):
                twice = (published("c"), published("c", version=2))
                await log.append(key("other"), batch("other", *twice), 0)
            with refused(InvalidArtifact):
                await log.append(
                    key("other"), batch("other", published("d", payload={"x": (1,)})), 0
                )
            assert await ids(store) == ["a"]
            assert not await log.read(key("other")) and len(await log.read(key("r"))) == 1
            [found] = await envelopes(store)
            assert found.consumptions == ()
            await log.append(key("other"), batch("other", published("b"), published("a")), 0)
            assert await ids(store) == ["a", "b"]

    async def test_a_refused_batch_adds_no_artifact(self) -> None:
        """A batch that the log rejects adds no artifact."""
        async with self.fresh() as (log, store):
            await log.append(key("r"), batch("r", Noted("x")), 0)
            with refused(Conflict):
                await log.append(key("r"), [event("r", 1, published("a"), id="another")], 0)
            with refused(Conflict):
                await log.append(key("r"), [event("r", 2, published("a"), id="r/1")], 1)
            assert await ids(store) == []

    async def test_runs_that_publish_at_once(self) -> None:
        """Of two concurrent runs that publish one id with different content, exactly one is
        rejected."""
        async with self.fresh() as (log, store):
            refusals: list[str] = []

            async def publish(run: str, facts: Sequence[Fact]) -> None:
                try:
                    await log.append(key(run), batch(run, *facts), 0)
                except ArtifactExists:
                    refusals.append(run)

            async with anyio.create_task_group() as tasks:
                for n in range(10):
                    contested = published("same", version=1 + n % 2) if n < 2 else Noted("x")
                    tasks.start_soon(publish, f"run {n}", [published(f"{n}"), contested])
            assert len(refusals) == 1 and not await log.read(key(refusals[0]))
            assert len(await ids(store)) == 10

    async def test_the_board_is_made_again_from_the_log(self) -> None:
        """Rebuilding the store from the log changes nothing that is there."""
        async with self.fresh() as (log, store):
            await log.append(key("r"), batch("r", published("a", tags={"t"}), consumed("a")), 0)
            await log.append(key("s"), batch("s", Noted("x"), published("b")), 0)
            before = await answers(store)
            await rebuild(log, store, TENANT)
            await rebuild(log, store, TENANT)
            assert await answers(store) == before


def published(id: str, **more: Any) -> ArtifactPublished:
    """The event data of a published artifact."""
    return ArtifactPublished(artifact(id, **more), turn=1)


def consumed(*ids: str, run: str = "") -> ArtifactConsumed:
    """The event data of artifacts that `bob` takes in a second turn."""
    return ArtifactConsumed("bob", "bob/0", ids, turn=2, run=run)


def batch(run: str, *facts: Fact, after: int = 0) -> list[Event]:
    """Events of a run after a position, one for each fact."""
    return [event(run, seq, fact) for seq, fact in enumerate(facts, after + 1)]


async def answers(store: ArtifactStore) -> tuple[Sequence[Any], BoardSummary]:
    """The envelopes and the summary of a store."""
    return await envelopes(store), await store.summary(FilterConfig(), ANN, LATER)
