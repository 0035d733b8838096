"""Answers are checked when they are given and again when they are taken in, by one clock."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.flow.scenes import Work, note
from tests.support.folders import write_folder
from tests.support.plays import call, every, lines, solo
from tests.support.world import PATIENCE, Refitted
from turnloom import Delivery, Flow, Loom, Run
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.errors import QuestionExpired, UsageError
from turnloom.log.spec import RunKey
from turnloom.ports import Reply, codec
from turnloom.testing import FakeClock

ASK = """
    from turnloom import use_ui_tool

    async def plan(context_variables):
        return await use_ui_tool("plan", {"title": "Mine"}, timeout=60)
    """
RESPONSE = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
PLAN = {"function": "plan", "tool_type": "UI_Tool", "ui": {"response": RESPONSE}}
YES = {"ok": True}


def asking(where: Path) -> str:
    return write_folder(where, solo(ASK, PLAN, script=lines(call("plan"), "Done.")))


def approving() -> Flow[Work]:
    return Flow("work", Work).start_with(note("draft")).await_approval("boss").then(note("paid"))


def ahead(clock: FakeClock) -> FakeClock:
    """A clock that is an hour ahead of another."""
    return FakeClock(clock.now() + timedelta(hours=1))


async def until_asked(run: Run) -> str:
    async with asyncio.timeout(PATIENCE):
        async for event in run.events():
            if event.kind == "run.paused":
                return event.data.waiting_for
    raise AssertionError("it ended")


async def ended(run: Run) -> str:
    async with asyncio.timeout(PATIENCE):
        return (await run.finished()).kind


async def test_an_answer_is_checked_whatever_time_it_is_for_who_gives_it(tmp_path: Path) -> None:
    store, clock = MemoryStore(codec()), FakeClock()
    async with (
        Loom(store=store, clock=clock) as app,
        Loom(store=store, clock=ahead(clock)) as other,
    ):
        run = await app.start(asking(tmp_path))
        id = await until_asked(run)
        with pytest.raises((UsageError, QuestionExpired)):
            await other.handle(run.id).answer(id, {"ok": "perhaps"})
        assert not every(await app.history.events(run.id), "question.answered")
        assert await other.handle(run.id).answer(id, YES) is Delivery.TAKEN
        assert await ended(run) == "run.finished"
        assert not every(await app.history.events(run.id), "question.expired")


async def test_the_clock_of_the_store_decides_what_is_late(tmp_path: Path) -> None:
    """Also where nobody drives the run, and the answer is put on record by who gives it."""
    clock = FakeClock()
    store = Refitted(MemoryStore(codec()), clock=clock)
    runs: list[str] = []
    async with Loom(store=store) as app:
        for name in ("early", "late"):
            run = await app.start(asking(tmp_path / name))
            await until_asked(run)
            runs.append(run.id)
    async with Loom(store=store, clock=ahead(clock)) as other:
        assert await other.handle(runs[0]).answer(None, YES) is Delivery.RECORDED
    clock.advance(timedelta(seconds=61))
    async with Loom(store=store, clock=FakeClock()) as other:
        assert await other.handle(runs[1]).question() is None
        with pytest.raises(QuestionExpired):
            await other.handle(runs[1]).answer(None, YES)


def test_a_clock_that_tells_no_time_is_refused() -> None:
    with pytest.raises(UsageError):
        Loom(store=Refitted(MemoryStore(codec()), clock=object()))


BAD = {
    "value": ("{}/answer", {"ok": "perhaps"}, "local"),
    "person": ("{}/answer", YES, "eve"),
    "id": ("mine", YES, "local"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_an_answer_that_came_in_another_way_is_refused_on_record(
    kind: str, bad: tuple[str, Any, str], tmp_path: Path
) -> None:
    """The question stays open, and a right answer counts: before or after the other is seen."""
    store = MemoryStore(codec()) if kind == "memory" else SqliteStore(tmp_path / "r.db", codec())
    id, value, by = bad
    async with Loom(store=store) as app:
        runs = [await app.start(asking(tmp_path / name)) for name in ("before", "after")]
        asked = [await until_asked(run) for run in runs]
    for run, question in zip(runs, asked, strict=True):
        key = RunKey("local", run.id)
        await store.inbox.offer(key, id.format(question), Reply(question, value, by))
    async with Loom(store=store) as app:
        seen = await app.resume(runs[0].id)
        await until_refused(seen)
        for run in runs:
            assert await app.handle(run.id).answer(None, YES) in (
                Delivery.TAKEN,
                Delivery.RECORDED,
            )
            assert await ended(await app.resume(run.id)) == "run.finished"
            events = await app.history.events(run.id)
            assert [fact.by for fact in every(events, "answer.refused")] == [by]
            assert [fact.value for fact in every(events, "question.answered")] == [YES]
            assert [fact.result for fact in every(events, "tool.returned")] == [YES]
    await store.aclose()


async def until_refused(run: Run) -> None:
    async with asyncio.timeout(PATIENCE):
        async for event in run.events():
            if event.kind == "answer.refused":
                return


async def test_a_decision_that_the_requester_slipped_in_does_not_count() -> None:
    store, flow = MemoryStore(codec()), approving()
    async with Loom(store=store) as app:
        waiting = await app.run(flow, user_id="ada")
        question = waiting.question
        assert question is not None
        key, id = RunKey("local", waiting.run_id), f"{question.id}/answer"
        await store.inbox.offer(key, id, Reply(question.id, "approve", "ada"))
        run = await app.resume(waiting.run_id)
        await until_refused(run)
        assert (await run.outcome()).status == "waiting"
        await run.answer(None, "approve", user_id="boss")
        assert (await run.outcome()).state.notes == ["draft", "paid"]
