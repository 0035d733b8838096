"""Messages survive the process that drives the run."""

from pathlib import Path

import pytest

from tests.messages.test_send import ALONE, Speaker, check_replay, texts, verdicts
from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.runtime.spec import IfBusy


@pytest.mark.parametrize("if_busy", ["enqueue", "interrupt"])
async def test_a_queued_message_survives_its_process(tmp_path: Path, if_busy: IfBusy) -> None:
    store, folder = f"sqlite:{tmp_path / 'turnloom.db'}", write_folder(tmp_path, ALONE, "Alone")
    speaker = Speaker()
    speaker.holds = {"Begin."}
    async with Loom(store=store, engine=speaker) as app:
        run = await app.start(folder)
        await speaker.entered.wait()
        await run.send("One", id="1")
    speaker = Speaker()
    speaker.holds = {"Begin."}
    async with Loom(store=store, engine=speaker) as app:
        again = await app.resume(run.id)
        await speaker.entered.wait()
        assert (await again.send("One", id="1")).repeated
        sent = await again.send("Two", id="2", if_busy=if_busy)
        assert sent.verdict == ("queued" if if_busy == "enqueue" else "interrupts")
        speaker.go.set()
        await again.finished()
        begun = ["Begin.", "Begin.!"] if if_busy == "enqueue" else ["Begin."]
        assert await texts(app, run.id) == [*begun, "One", "Two", "Two!"]
        await check_replay(app, run.id)


async def test_a_message_to_a_run_that_no_process_drives(tmp_path: Path) -> None:
    """The process that takes it in drives the run from then on."""
    store, folder = f"sqlite:{tmp_path / 'turnloom.db'}", write_folder(tmp_path, ALONE, "Alone")
    speaker = Speaker()
    speaker.holds = {"Begin."}
    async with Loom(store=store, engine=speaker) as app:
        run = await app.start(folder)
        await speaker.entered.wait()
    async with Loom(store=store, engine=Speaker()) as app:
        handle = app.handle(run.id)
        await handle.send("One", id="1")
        await handle.finished()
        assert (await texts(app, run.id))[-2:] == ["One", "One!"]
        assert len(await verdicts(app, run.id)) == 1
        sent = await handle.send("Two", id="2")
    async with Loom(store=store, engine=Speaker()) as app:
        repeated = await app.handle(run.id).send("Two", id="2")
        assert repeated.repeated and repeated.run == sent.run == f"{run.id}.2"
        await (await app.resume(sent.run)).finished()
        assert (await texts(app, sent.run))[-2:] == ["Two", "Two!"]
        await check_replay(app, sent.run)
