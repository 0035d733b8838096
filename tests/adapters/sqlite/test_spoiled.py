"""One spoiled run, row or message harms no other: it is shown as broken, and named."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.flow.scenes import Work, note
from turnloom import Flow, Loom, UnknownKind, artifact_type
from turnloom.adapters.sqlite.batches import SEQ_BITS
from turnloom.guards.spec import Pool
from turnloom.runtime.logic import freeze, fresh


@artifact_type(name="spoiled.Order")
class Order(BaseModel):
    n: int = 0


def approving() -> Flow[Work]:
    return Flow("work", Work).start_with(note("a")).await_approval("boss").finally_(note("b"))


def replaced(old: str, new: str) -> Callable[[bytes], Any]:
    return lambda data: re.sub(old.encode(), new.encode(), data)


SPOILS: dict[str, Callable[[bytes], Any]] = {
    "overwritten": lambda data: b"\0" * len(data),
    "no UTF-8": lambda data: data.replace(b"run", b"r\xffn"),
    "truncated": lambda data: data[:50],
    "empty": lambda data: b"",
    "a text": lambda data: "\ud83d\ude00 no".encode("utf-16", "surrogatepass").decode("utf-16"),
    "a number": lambda data: 5,
    "an unknown field": replaced(r'"data":\{', '"data":{"later":1,'),
    "a kind of a newer release": replaced(r'"kind":"[^"]*"', '"kind":"run.dreamed"'),
    "a later version": replaced(r'"actor"', '"v":7,"actor"'),
    "another type": replaced(r'"seq":\d+', '"seq":"one"'),
    "no object": lambda data: b"[1]",
    "too deep": lambda data: b"[" * 100_000,
}


def spoil(path: Path, run: str, how: Callable[[bytes], Any], which: str) -> None:
    """Change the first or the last batch of a run."""
    with closing(sqlite3.connect(path)) as file, file:
        n = file.execute("SELECT n FROM runs WHERE id = ?", (run,)).fetchone()[0]
        place = (n << SEQ_BITS, (n + 1) << SEQ_BITS)
        pos, data = file.execute(
            f"SELECT {which}(pos), data FROM batches WHERE pos > ? AND pos < ?", place
        ).fetchone()
        file.execute("UPDATE batches SET data = ? WHERE pos = ?", (how(data), pos))


async def begin(path: Path) -> tuple[str, str]:
    """A store with runs that wait; the last of them, and the one before."""
    async with Loom(store=path) as app:
        runs = [await app.start(approving()) for _ in range(2)]
        for each in runs:
            await each.outcome()
    return runs[0].id, runs[1].id


@pytest.mark.parametrize("which", ["min", "max"])
@pytest.mark.parametrize("how", SPOILS)
async def test_a_spoiled_run_is_listed_as_broken_and_harms_no_other(
    how: str, which: str, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    whole, broken = await begin(path)
    spoil(path, broken, SPOILS[how], which)
    async with Loom(store=path) as app:
        app.register_flow(approving())
        listed = {each.run: each for each in await app.runs()}
        assert [*listed] == [broken, whole]
        assert listed[broken].status == "broken" and listed[broken].reason
        assert listed[whole].status == "waiting" and not listed[whole].reason
        for reading in (app.history.events, app.explain.timeline, app.history.definition):
            with pytest.raises(UnknownKind) as refused:
                await reading(broken)
            assert repr(broken) in str(refused.value)
        for use in (app.resume, lambda run: app.handle(run).cancel()):
            with pytest.raises(UnknownKind):
                await use(broken)
        run = await app.resume(whole)
        await run.answer(None, "approve", user_id="boss")
        assert (await run.finished()).kind == "run.finished"


async def test_an_event_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    _, broken = await begin(path)
    async with Loom(store=path) as app:
        third = (await app.history.events(broken))[2]
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "UPDATE batches SET data = CAST(replace(CAST(data AS TEXT), ?, ?) AS BLOB)",
            (f'"kind":"{third.kind}"', '"kind":"later"'),
        )
    async with Loom(store=path) as app:
        with pytest.raises(UnknownKind, match=rf"{broken}.*later.*seq {third.seq}"):
            await app.history.events(broken)


async def test_a_board_goes_on_beside_a_spoiled_run(tmp_path: Path) -> None:
    path, done = tmp_path / "runs.db", list[int]()

    async def work(task: Any) -> str:
        done.append(task.inputs[0].payload["n"])
        return "Done."

    def declare(app: Loom, engine: Any) -> Any:
        board = app.board()
        board.agent("clerk").consumes(Order).with_engines(engine)
        return board

    async with Loom(store=path) as app:
        board = declare(app, work)
        orders = [await board.publish(Order(n=n)) for n in range(3)]
    broken = orders[1].run or ""
    spoil(path, broken, SPOILS["truncated"], "max")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE artifacts SET data = 'x' WHERE id = ?", (orders[2].id,))
    done.clear()
    async with Loom(store=path) as app:
        board = declare(app, work)
        await board.resume()
        found, _ = await board.query_artifacts()
        assert [each.id for each in found] == [orders[0].id, orders[1].id]
        assert await board.get(orders[2].id) is None
        await board.publish(Order(n=9))
        await board.run_until_idle()
        assert 9 in done
        assert {each.status for each in await app.runs() if each.run == broken} == {"broken"}


async def test_what_is_kept_beside_the_log_counts_as_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    whole, other = await begin(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE plans SET plan = 'x'")
        file.execute("INSERT INTO beliefs VALUES ('local', 'w', '', 'a', 'many', -1)")
        file.execute("INSERT INTO results VALUES ('local', 'key', NULL, X'ff', '')")
        for run in (whole, other):
            file.execute("INSERT INTO snapshots VALUES ('local', ?, 3, X'00')", (run,))
        n = file.execute("SELECT n FROM runs WHERE id = ?", (whole,)).fetchone()[0]
        file.execute("INSERT OR REPLACE INTO ids VALUES (?, 2, X'ff')", (n,))
        question = "INSERT INTO inbox (tenant, run, id, position, message) VALUES (?, ?, ?, 0, ?)"
        file.execute(question, ("local", whole, "approval/1#1/answer", b"x"))
    async with Loom(store=path) as app:
        app.register_flow(approving())
        run = await app.resume(whole)
        await run.answer(None, "approve", user_id="boss")
        assert (await run.finished()).kind == "run.finished"
        parts = app._open()
        assert not await parts.store.beliefs.beliefs(Pool("local", "w", ""), ["a"])
        assert await parts.store.results.find("local", "key", parts.clock.now()) is None


async def test_a_snapshot_of_another_moment_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    whole, _ = await begin(path)
    async with Loom(store=path) as app:
        app.register_flow(approving())
        parts = app._open()
        run = app.handle(whole)._key
        state = fresh(run, (await parts.runs.definition(run)).workflow)
        state.position = 10_000
        await parts.store.snapshots.save(run, 10_000, freeze(state))
        again = await app.resume(whole)
        await again.answer(None, "approve", user_id="boss")
        assert (await again.finished()).kind == "run.finished"
