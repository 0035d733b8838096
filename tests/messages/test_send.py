"""Messages to conversations, at any time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.scenes import Work, flow_of, note
from tests.support.folders import write_folder
from turnloom import Answer, Loom, Run, Task
from turnloom.errors import MessageRejected, NotYours, UnknownRun, UsageError

ALONE = {
    "orchestrator.yaml": "initial_agent: Ann\ninitial_message: Begin.\n",
    "agents.yaml": "agents: {Ann: {system_message: Greet.}}",
    "handoffs.yaml": (
        "handoff_rules: [{source_agent: Ann, target_agent: terminate, handoff_type: after_work}]"
    ),
}
TALK = ALONE | {
    "handoffs.yaml": (
        "handoff_rules: [{source_agent: Ann, target_agent: user, handoff_type: after_work}]"
    )
}


class Speaker:
    """An engine that says what it heard last, and waits where it is told to."""

    def __init__(self) -> None:
        self.holds: set[str] = set()
        self.entered = asyncio.Event()
        self.go = asyncio.Event()
        self.heard: list[list[str]] = []

    async def __call__(self, task: Task) -> Answer:
        texts = [message.text for message in task.transcript]
        self.heard.append(texts)
        if texts[-1] in self.holds:
            self.entered.set()
            await self.go.wait()
        return Answer(f"{texts[-1]}!")


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture(params=["memory", "sqlite"])
async def app(
    request: pytest.FixtureRequest, tmp_path: Path, speaker: Speaker
) -> AsyncIterator[Loom]:
    store = "memory" if request.param == "memory" else f"sqlite:{tmp_path / 'turnloom.db'}"
    async with Loom(store=store, engine=speaker) as made:
        yield made


async def texts(app: Loom, run: str) -> list[str]:
    """What was said in a run."""
    events = await app.history.events(run)
    return [each.data.text for each in events if each.kind in ("user.text", "agent.text")]


async def verdicts(app: Loom, run: str) -> list[str]:
    return [
        each.data.verdict for each in await app.history.events(run) if each.kind == "message.sent"
    ]


async def until(run: Run[Any], kind: str, times: int = 1) -> None:
    """Wait until a run has recorded so many events of a kind."""
    async for event in run.events():
        times -= event.kind == kind
        if not times:
            return


async def check_replay(app: Loom, run: str) -> None:
    assert (await app.history.replay(run)).divergence is None
    folder = (await app.history.events(run))[0].data.root
    backtest = await app.history.backtest(folder, [run])
    assert not backtest.refused and str(backtest)
    assert not any(each.differs for each in backtest.runs), str(backtest)
    assert str(await app.explain.timeline(run)) and await app.explain.page(run)


async def test_a_message_is_the_input_that_the_run_waits_for(app: Loom, tmp_path: Path) -> None:
    run = await app.start(write_folder(tmp_path, TALK, "Talk"))
    await until(run, "run.paused")
    sent = await run.send("Hello", id="m1")
    assert (sent.run, sent.verdict, sent.repeated) == (run.id, "answers", False)
    await until(run, "run.paused", 2)
    again = await run.send("Another text", id="m1")
    assert again.repeated and again.verdict == "answers"
    assert await texts(app, run.id) == ["Begin.", "Begin.!", "Hello", "Hello!"]
    await run.cancel()
    await check_replay(app, run.id)


async def test_a_message_in_a_turn_is_taken_in_when_it_ends(
    app: Loom, tmp_path: Path, speaker: Speaker
) -> None:
    speaker.holds = {"Begin."}
    run = await app.start(write_folder(tmp_path, ALONE, "Alone"))
    await speaker.entered.wait()
    assert (await run.send("One", id="1")).verdict == "queued"
    assert (await run.send("Two", id="2", if_busy="enqueue")).verdict == "queued"
    assert (await run.send("One", id="1")).repeated
    speaker.go.set()
    await run.finished()
    assert await texts(app, run.id) == ["Begin.", "Begin.!", "One", "Two", "Two!"]
    assert await verdicts(app, run.id) == ["queued", "queued"]
    await check_replay(app, run.id)


async def test_a_message_is_rejected_in_a_turn(app: Loom, tmp_path: Path, speaker: Speaker) -> None:
    speaker.holds = {"Begin."}
    run = await app.start(write_folder(tmp_path, ALONE, "Alone"))
    await speaker.entered.wait()
    for _ in range(2):
        with pytest.raises(MessageRejected) as rejected:
            await run.send("No", if_busy="reject", id="no")
        assert rejected.value.code == "TURNLOOM-REJECTED"
    speaker.go.set()
    await run.finished()
    assert await texts(app, run.id) == ["Begin.", "Begin.!"]
    assert await verdicts(app, run.id) == ["rejected"]
    await check_replay(app, run.id)


async def test_a_message_interrupts_a_turn(app: Loom, tmp_path: Path, speaker: Speaker) -> None:
    speaker.holds = {"Begin."}
    run = await app.start(write_folder(tmp_path, ALONE, "Alone"))
    await speaker.entered.wait()
    sent = await run.send("Stop that", if_busy="interrupt")
    assert (sent.run, sent.verdict) == (run.id, "interrupts")
    await run.finished()
    assert await texts(app, run.id) == ["Begin.", "Stop that", "Stop that!"]
    events = await app.history.events(run.id)
    ended = [each.data.status for each in events if each.kind == "turn.finished"]
    assert ended == ["cancelled", "done"]
    await check_replay(app, run.id)


async def test_a_message_to_an_ended_conversation_continues_it(
    app: Loom, tmp_path: Path, speaker: Speaker
) -> None:
    run = await app.start(write_folder(tmp_path, ALONE, "Alone"))
    await run.finished()
    before = await app.history.events(run.id)
    sent = await run.send("And then?", id="m")
    assert (sent.run, sent.verdict) == (f"{run.id}.2", "taken")
    following = app.handle(sent.run)
    await following.finished()
    assert (await run.send("And then?", id="m")).repeated
    assert await app.history.events(run.id) == before
    assert await texts(app, sent.run) == ["Begin.", "Begin.!", "And then?", "And then?!"]
    assert speaker.heard[-1] == ["Begin.", "Begin.!", "And then?"]
    third = await run.send("Once more", id="n")
    assert third.run == f"{run.id}.3" and (await app.handle(third.run).finished()).kind
    listed = {each.run: each.continues for each in await app.runs()}
    assert listed == {run.id: "", sent.run: run.id, third.run: sent.run}
    assert "continued" in str(await app.explain.timeline(third.run))
    chat = [each async for each in app.handle(third.run).chat()]
    assert [each.continues for each in chat if each.continues] == [run.id, sent.run]
    await check_replay(app, sent.run)
    await check_replay(app, third.run)


async def test_messages_at_once_continue_one_conversation(app: Loom, tmp_path: Path) -> None:
    run = await app.start(write_folder(tmp_path, ALONE, "Alone"))
    await run.finished()
    sent = await asyncio.gather(*(run.send(f"{n}", id=f"{n % 3}") for n in range(6)))
    runs = await app.runs()
    for each in runs:
        await app.handle(each.run).finished()
    last = f"{run.id}.{len(await app.runs())}" if len(runs) > 1 else run.id
    said = [text for text in await texts(app, last) if text in "012345"]
    assert len(said) == len({each.id for each in sent}) == 3


async def test_a_failed_conversation_continues_without_the_failed_turn(
    tmp_path: Path,
) -> None:
    async def fail(task: Task) -> Answer:
        if [*task.transcript][-1].text == "Begin.":
            raise ValueError("no")
        return Answer("Well.")

    async with Loom(store="memory", engine=fail) as app:
        run = await app.start(write_folder(tmp_path, ALONE, "Alone"))
        assert (await run.finished()).kind == "run.failed"
        sent = await run.send("Again")
        assert (await app.handle(sent.run).finished()).kind == "run.finished"
        assert await texts(app, sent.run) == ["Begin.", "Again", "Well."]
        await check_replay(app, sent.run)


async def test_what_cannot_be_sent_is_refused(app: Loom, tmp_path: Path) -> None:
    run = await app.start(write_folder(tmp_path, TALK, "Talk"), user_id="ann")
    await until(run, "run.paused")
    for wrong in ("", "  ", 5, None, "x" * 1_000_001, "\ud800"):
        with pytest.raises(UsageError):
            await run.send(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        await run.send("Hello", if_busy="wait")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        await run.send("Hello", id="")
    with pytest.raises(NotYours):
        await run.send("Hello", user_id="bob")
    with pytest.raises(UnknownRun):
        await app.handle("nosuchrun").send("Hello")
    flow = await app.start(flow_of(note("a")), Work())
    await flow.outcome()
    with pytest.raises(UsageError):
        await flow.send("Hello")
    assert await verdicts(app, run.id) == []
