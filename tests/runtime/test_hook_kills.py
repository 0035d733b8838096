"""A process that is really killed in a hook: the next one goes on, and each hook counts once."""

import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from tests.support.hooked import TRIGGERS, calls, hook, hooked, outcomes
from tests.support.logs import essence
from turnloom import Event, Loom

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

CHILD = Path(__file__).with_name("hooked_child.py")

# Each hook takes its time when it is the first process that comes there, and says so.
CODE = """
import os, time
class Pool: pass
def before_chat(context_variables):
    context_variables["pool"] = Pool()
    return pause("before_chat")
async def before_agent(context_variables): return pause("before_agent")
def after_agent(context_variables): return pause("after_agent")
def after_chat(context_variables):
    return [pause("after_chat"), context_variables["run_status"], "pool" in context_variables]
def pause(name):
    if name == os.environ.get("HANG_IN"):
        print("hangs", flush=True)
        time.sleep(60)
"""
SCRIPT = "agents: {A: ['Hello?'], B: ['Bye.']}"


async def live(folder: str, store: Path, hang_in: str, *run: str) -> str:
    """One life of a process; it is killed as soon as it hangs, and its run is known: a hook in a
    thread may come before that is said. The run's id."""
    command = [sys.executable, str(CHILD), folder, str(store), *run]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HANG_IN": hang_in}
    process = await anyio.open_process(command, stderr=None, env=env)
    said, began = "", None
    with anyio.fail_after(60):
        assert process.stdout
        async for part in TextReceiveStream(process.stdout):
            said += part
            began = re.search(r"run=(\w+)\.", said)
            if "hangs" in said and (run or began):
                process.kill()
        code = await process.wait()
    await process.aclose()
    assert code == (-signal.SIGKILL if hang_in else 0)
    if run:
        return run[0]
    assert began is not None
    return began[1]


async def log(store: Path, run: str) -> Sequence[Event]:
    async with Loom(store=str(store)) as app:
        return await app.history.events(run)


def without_ids(events: Sequence[Event]) -> list[object]:
    """What two runs have in common that do the same."""
    return [each for each in essence(events) if each[1] != "context.loaded"]


async def test_a_process_killed_in_each_hook(tmp_path: Path) -> None:
    """One run over five processes, of which four are killed, one in each kind of hook."""
    hooks = [hook(each, each) for each in TRIGGERS]
    folder = hooked(tmp_path, hooks, CODE, script=SCRIPT)
    store = tmp_path / "turnloom.db"
    undisturbed = await log(store, await live(folder, store, ""))
    run = await live(folder, store, TRIGGERS[0])
    for trigger in (*TRIGGERS[1:], ""):
        await live(folder, store, trigger, run)
    killed = await log(store, run)
    assert without_ids(killed) == without_ids(undisturbed)
    assert killed[-1].kind == "run.finished"
    assert [each.kind for each in killed].count("run.resumed") == 4
    again = [each for each in killed if getattr(each.data, "restored", False)]
    assert [each.kind for each in again] == ["lifecycle.tool_call", "lifecycle.tool_result"] * 3
    assert len(calls(killed)) == len(outcomes(killed)) == 6 + len(again) // 2
    assert outcomes(killed)[-1] == ("after_chat", "success", [None, "finished", True])
