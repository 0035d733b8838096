"""Messages to a run that another process drives, and does not take in."""

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, RunBusy
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)

    paid: bool = False


def pay(order: Order) -> dict[str, bool]:
    return {"paid": True}


ORDERS = Flow("orders", Order).start_with(pay).await_approval("ann", name="ok")


async def test_a_run_that_another_process_drives_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with Loom(store=path) as app, aclosing(SqliteStore(path, codec())) as other:
        outcome = await app.run(ORDERS)
        run = app.handle(outcome.run_id)
        assert await run.holder() is None
        async with other.claims.claim(RunKey("local", run.id)):
            holder = await run.holder()
            assert holder is not None and not holder.is_late
            with pytest.raises(RunBusy, match=holder.process):
                await app.resume(run.id)
        await app.resume(run.id)
        assert await run.cancel()


@pytest.mark.doors
async def test_messages_to_a_run_that_is_held_are_given_up(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with Loom(store=path) as app, aclosing(SqliteStore(path, codec())) as other:
        run = app.handle((await app.run(ORDERS)).run_id)
        async with other.claims.claim(RunKey("local", run.id)):
            answer = run.answer(None, {"decision": "approve"}, user_id="ann")
            said = await asyncio.gather(answer, run.cancel(), return_exceptions=True)
            assert [type(each) for each in said] == [RunBusy, RunBusy]
            assert all(str(os.getpid()) in str(each) for each in said)
        await app.resume(run.id)
        assert (await run.finished()).kind == "run.cancelled", "they were kept"
