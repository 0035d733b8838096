"""Kill the program at every append and every call, and check how the next one continues."""

from pathlib import Path

import pytest

from turnloom import Answer, Loom, Task
from turnloom.adapters.memory import MemoryStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import (
    CrashingEngine,
    CrashingScheduler,
    CrashingStore,
    FakeClock,
    FakeEntropy,
    Fuse,
)


class Mail:
    """An engine that counts its calls."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def __call__(self, task: Task) -> Answer:
        self.sent.append(task.key)
        return Answer("Sent.")


async def live(store: MemoryStore, mail: Mail, fuse: Fuse, folder: str) -> bool:
    """Run a program that starts or resumes the workflow; return whether it survived."""
    scheduler = CrashingScheduler(FakeClock())

    async def send(app: Loom) -> None:
        runs = await app.runs()
        run = await app.resume(runs[0].run) if runs else await app.start(folder)
        await run.finished()

    async with Loom(
        store=CrashingStore(store, fuse),
        engine=CrashingEngine(mail, fuse),
        scheduler=scheduler,
        clock=FakeClock(),
        entropy=FakeEntropy(),
    ) as app:
        return await scheduler.outlives(send(app))


@pytest.mark.parametrize("points", range(8))
async def test_a_mail_is_sent_again_only_if_its_answer_was_lost(
    points: int, tmp_path: Path
) -> None:
    (tmp_path / "agents.yaml").write_text("Postman: {system_message: Send it.}\n", "utf-8")
    store, mail = MemoryStore(codec()), Mail()
    assert not await live(store, mail, Fuse(points), str(tmp_path))
    assert await live(store, mail, Fuse(), str(tmp_path))
    events = await store.log.read(RunKey("local", "run1"))
    assert events[-1].kind == "run.finished"
    assert [event.kind for event in events].count("agent.text") == 1
    assert len(mail.sent) == (2 if points in (5, 6) else 1)
