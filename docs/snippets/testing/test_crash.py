"""Kill the driver at every append and every call, and see what the next one makes of it."""

from pathlib import Path

import pytest

from turnloom import Answer, Task
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.runtime.service.driver import Driver, Stores
from turnloom.runtime.service.runs import Runs, World
from turnloom.testing import (
    CrashingEngine,
    CrashingLog,
    FakeClock,
    FakeDocuments,
    FakeEntropy,
    FakeEnvironment,
    Fuse,
    Killed,
)
from turnloom.variables.service import ContextSource
from turnloom.wiring import Folders


class Mail:
    """An engine whose calls can be counted."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def __call__(self, task: Task) -> Answer:
        self.sent.append(task.key)
        return Answer("Sent.")


def life(store: MemoryStore, mail: Mail, fuse: Fuse) -> World:
    """A process with a fuse; all of them share one store."""
    clock, log = FakeClock(), CrashingLog(store.log, fuse)
    return World(
        Stores(
            log,
            store.inbox,
            store.claims,
            store.snapshots,
            store.artifacts,
            store.beliefs,
            store.results,
        ),
        clock,
        FakeEntropy(),
        FakeEnvironment(),
        FakeDocuments(),
        Folders(CrashingEngine(mail, fuse)),
        InlineScheduler(clock),
    )


def driver(world: World) -> Driver:
    """What drives runs in a process."""
    context = ContextSource(world.environment, world.documents)
    return Driver(world.stores, (world.clock, world.entropy), world.definitions, context)


@pytest.mark.parametrize("points", range(6))
async def test_a_mail_is_sent_again_only_if_its_answer_was_lost(
    points: int, tmp_path: Path
) -> None:
    (tmp_path / "agents.yaml").write_text("Postman: {system_message: Send it.}\n", "utf-8")
    store, mail = MemoryStore(codec()), Mail()
    run = await Runs(life(store, mail, Fuse())).start(str(tmp_path), user="ann", tenant="acme")
    first, second = life(store, mail, Fuse(points)), life(store, mail, Fuse())
    with pytest.raises(Killed):
        await driver(first).drive(run)
    await driver(second).drive(run)

    events = await store.log.read(run)
    assert events[-1].kind == "run.finished"
    assert [event.kind for event in events].count("agent.text") == 1
    assert set(mail.sent) == {f"{run}/t1/model"}
    assert len(mail.sent) == (2 if points in (3, 4) else 1)
