"""What has a limit says so, before anything is stored; and what is kept holds no secrets."""

import gc
import logging
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.flow.scenes import Work, note
from tests.support.tables import tables_of
from turnloom import (
    Answer,
    Artifact,
    FilterConfig,
    Flow,
    FlowFailed,
    Loom,
    ReactionFailed,
    TagFilter,
    Task,
    UsageError,
    artifact_type,
)
from turnloom.adapters.mongo.documents import MongoServer
from turnloom.adapters.postgres.faults import PostgresServer
from turnloom.adapters.sqlite import SqliteStore
from turnloom.agents.logic.answers import MOST_CHARACTERS, MOST_TEXT
from turnloom.board.spec.queries import MOST_COMPARED
from turnloom.kernel.contained import bare
from turnloom.log.spec import RunKey
from turnloom.runtime.calls import MOST_BYTES
from turnloom.runtime.following import PIECES, Subscriptions
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import Inbox
from turnloom.runtime.spec import MOST_MAIL, Close, Delta, Stop
from turnloom.wiring import settings
from turnloom.wiring.schemes import place

KEY = RunKey("local", "r")
PASSWORD = "hunter2"


@artifact_type(name="limits.Order")
class Order(BaseModel):
    n: int = 0


def approving() -> Flow[Work]:
    return Flow("work", Work).start_with(note("a")).await_approval("boss").finally_(note("b"))


async def test_what_an_effect_gives() -> None:
    async def step(state: Work, ctx: Any) -> None:
        await ctx.once("effect", lambda: "x" * MOST_BYTES)

    async with Loom(store="memory") as app:
        with pytest.raises(FlowFailed) as failed:
            await app.run(Flow("work", Work).start_with(step).finally_(note("b")))
        failure = failed.value.outcome.failure
        assert failure is not None and "are the most" in failure.message


async def test_answers_of_people_and_engines() -> None:
    async def chatter(task: Task) -> Answer:
        return Answer("x" * (MOST_TEXT + 1))

    async with Loom(store="memory") as app:
        run = await app.start(approving())
        await run.outcome()
        with pytest.raises(UsageError, match="1,000,000"):
            await run.answer(None, "x" * MOST_CHARACTERS, user_id="boss")
        board = app.board()
        board.agent("clerk").consumes(Order).with_engines(chatter)
        await board.publish(Order())
        errors = await board.run_until_idle(raise_errors=False)
        assert errors is not None and errors.subgroup(ReactionFailed) is not None


def test_filters() -> None:
    many = {str(n) for n in range(1001)}
    for wrong in ({"types": many}, {"produced_by": many}, {"where": [("n", "in", [*many])]}):
        with pytest.raises(UsageError):
            FilterConfig(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        TagFilter(include=many)
    with pytest.raises(UsageError):
        FilterConfig(where=[("n", "eq", n) for n in range(101)])


async def test_a_page_of_a_large_board() -> None:
    def order(n: int) -> Artifact:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return Artifact(id=str(n), type="t", payload={"n": n}, produced_by="ann", created_at=at)

    async with Loom(store="memory") as app:
        await app._open().artifacts.put("local", [order(n) for n in range(MOST_COMPARED + 1)])
        board = app.board()
        found, _ = await board.query_artifacts()
        assert len(found) == MOST_COMPARED and found.cursor is not None
        found, _ = await board.query_artifacts(cursor=found.cursor)
        assert len(found) == 1 and found.cursor is None
        last = FilterConfig(where=[("n", "eq", MOST_COMPARED)])
        found, _ = await board.query_artifacts(last)
        assert len(found) == 0 and found.cursor is not None
        assert [each.payload["n"] async for each in board.iter_artifacts(last)] == [MOST_COMPARED]
        limited = FilterConfig(limit=MOST_COMPARED + 1)
        assert len([each async for each in board.iter_artifacts(limited)]) == MOST_COMPARED + 1
        found, _ = await board.query_artifacts(FilterConfig(limit=4))
        assert len(found) == 4


async def test_mail_in_memory() -> None:
    async with Loom(store="memory") as app:
        inbox = app._open().store.inbox
        for n in range(MOST_MAIL):
            assert await inbox.offer(KEY, f"close/{n}", Close("a#1"))
        await refuse_more(inbox)


# Messages like the first one, with ids of their own; by what stands before the names of tables.
MANY = f"""
    WITH RECURSIVE numbers (k) AS (
        SELECT 1 UNION ALL SELECT k + 1 FROM numbers WHERE k < {MOST_MAIL - 1})
    """
FLOOD = {
    "": f"""{MANY} INSERT INTO inbox (tenant, run, id, position, message)
        SELECT tenant, run, id || k, position, message FROM inbox CROSS JOIN numbers""",
    "turnloom_": f"""{MANY} INSERT INTO turnloom_inbox (tenant, run, id, key, message)
        SELECT tenant, run, id || k, sha256(k::text::bytea), message
        FROM turnloom_inbox CROSS JOIN numbers""",
}


async def test_mail_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with Loom(store=path) as app:
        inbox = app._open().store.inbox
        assert await inbox.offer(KEY, "close/0", Close("a#1"))
        with tables_of(path) as tables:
            tables.execute(FLOOD[tables.prefix])
        await refuse_more(inbox)


async def refuse_more(inbox: Inbox) -> None:
    with pytest.raises(UsageError, match="10,000 messages"):
        await inbox.offer(KEY, "close/more", Close("a#1"))
    assert await inbox.offer(KEY, "cancel", Stop("ann"))


def test_pieces_of_an_answer(tmp_path: Path) -> None:
    heard = list[Delta]()
    watchers = Subscriptions(SqliteStore(tmp_path / "unused", codec()).log)
    text = "".join(map(str, range(1000)))
    for n, letter in enumerate(text):
        watchers.publish(KEY, Delta("r", 1, "Ann", n, letter), "ann")
    with watchers.listen(KEY, heard.append):
        assert "".join(each.text for each in heard) == text and len(heard) <= PIECES
        assert [each.offset for each in heard][:1] == [0]


def test_no_repr_has_a_password() -> None:
    url = f"postgresql://ann:{PASSWORD}@host/db"
    for thing in (
        PostgresServer("host", PASSWORD),
        MongoServer("host", PASSWORD),
        settings({"artifacts": url}),
        place("artifacts", url),
    ):
        assert PASSWORD not in repr(thing)


class Held:
    """Something in a frame."""


async def test_an_error_is_kept_without_its_frames(tmp_path: Path) -> None:
    def fail() -> weakref.ref[Held]:
        held = Held()
        try:
            raise ValueError("no", held.__class__.__name__)
        except ValueError as error:
            watchers.fail(KEY, error, "trace", log_it=False)
        return weakref.ref(held)

    watchers = Subscriptions(SqliteStore(tmp_path / "unused", codec()).log)
    held = fail()
    gc.collect()
    assert held() is None
    with pytest.raises(ValueError, match="no"):
        await watchers.rested(KEY)
    assert str(bare(UsageError("said"))) == "said"


def test_an_error_that_a_model_caused_is_kept_too() -> None:
    with pytest.raises(UsageError) as refused:
        try:
            TypeAdapter(int).validate_python("one")
        except ValidationError as error:
            raise UsageError("no number") from error
    kept = bare(refused.value)
    assert isinstance(kept, UsageError) and "int_parsing" in str(kept.__cause__)


async def test_a_trace_in_the_log_is_masked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PAY_KEY", PASSWORD)
    source = {"type": "environment", "env_var": "PAY_KEY"}
    key = {"type": "string", "secret": True, "source": source}
    flow = Flow("work", Work, variables={"definitions": {"key": key}})
    async with Loom(store="memory") as app:
        run = await app.start(flow.start_with(note("a")).finally_(note("b")))
        await run.finished()
        parts = app._open()
        driver = parts.runs._driver
        live, _ = await driver._thaw(run._key)
        driver._hidden[run._key] = live.journal.secrets
        try:
            raise RuntimeError(f"key {PASSWORD}")
        except RuntimeError as error:
            trace = driver.trace(run._key, error)
        with caplog.at_level(logging.ERROR):
            parts.runs.following.fail(run._key, RuntimeError("no"), trace)
        assert PASSWORD not in trace and "RuntimeError" in trace
        assert "RuntimeError" in caplog.text and PASSWORD not in caplog.text
