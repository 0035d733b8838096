"""What a log is told of the board is on the board in the same moment, or nowhere."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.ports import ArtifactStore
from turnloom.board.service import rebuild
from turnloom.board.spec import BoardSummary, FilterConfig
from turnloom.errors import ArtifactExists, Conflict, InvalidArtifact
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, Fact
from turnloom.testing.contracts.artifacts.samples import ANN, LATER, artifact, ids
from turnloom.testing.contracts.artifacts.taking import envelopes
from turnloom.testing.contracts.facts import TENANT, Noted, event, key, refused


class FollowingContract:
    """The suite for a log and the artifacts of one store."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[EventLog, ArtifactStore]]:
        """An empty log, and the artifacts that follow it."""
        raise NotImplementedError

    async def test_what_the_log_holds_is_on_the_board(self) -> None:
        """Artifacts are there once their event is, and so is who took them, from when and where."""
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

    async def test_who_takes_in_another_run(self) -> None:
        """An event may name the run that takes; else it is its own."""
        async with self.fresh() as (log, store):
            taking = consumed("a", run="other")
            await log.append(key("r"), batch("r", published("a"), taking), 0)
            [found] = await envelopes(store)
            assert [each.run for each in found.consumptions] == ["other"]

    async def test_a_batch_again_changes_nothing(self) -> None:
        """A batch that is stored already is given back, and the board stays as it is."""
        async with self.fresh() as (log, store):
            stored = batch("r", published("a"), consumed("a"))
            await log.append(key("r"), stored, 0)
            before = await envelopes(store)
            assert list(await log.append(key("r"), stored, 0)) == stored
            assert await envelopes(store) == before

    async def test_other_content_is_refused_with_all_that_comes_with_it(self) -> None:
        """An artifact that is there with other content keeps its batch out of log and board."""
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

    async def test_what_the_log_refuses_is_not_on_the_board(self) -> None:
        """A batch at a wrong position, or with an id that is taken, leaves nothing behind."""
        async with self.fresh() as (log, store):
            await log.append(key("r"), batch("r", Noted("x")), 0)
            with refused(Conflict):
                await log.append(key("r"), [event("r", 1, published("a"), id="another")], 0)
            with refused(Conflict):
                await log.append(key("r"), [event("r", 2, published("a"), id="r/1")], 1)
            assert await ids(store) == []

    async def test_runs_that_publish_at_once(self) -> None:
        """Of two that publish one id with other content one is refused; nobody else is."""
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
        """What is on the board already stays as it is."""
        async with self.fresh() as (log, store):
            await log.append(key("r"), batch("r", published("a", tags={"t"}), consumed("a")), 0)
            await log.append(key("s"), batch("s", Noted("x"), published("b")), 0)
            before = await answers(store)
            await rebuild(log, store, TENANT)
            await rebuild(log, store, TENANT)
            assert await answers(store) == before


def published(id: str, **more: Any) -> ArtifactPublished:
    """That an artifact was published."""
    return ArtifactPublished(artifact(id, **more), turn=1)


def consumed(*ids: str, run: str = "") -> ArtifactConsumed:
    """That `bob` took artifacts into a second turn."""
    return ArtifactConsumed("bob", "bob/0", ids, turn=2, run=run)


def batch(run: str, *facts: Fact, after: int = 0) -> list[Event]:
    """Facts as events of a run behind a position."""
    return [event(run, seq, fact) for seq, fact in enumerate(facts, after + 1)]


async def answers(store: ArtifactStore) -> tuple[Sequence[Any], BoardSummary]:
    """All that a store says of what it holds."""
    return await envelopes(store), await store.summary(FilterConfig(), ANN, LATER)
