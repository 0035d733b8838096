"""Runs as their users see them: answers, cancels, troubles, several at once."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.folders import INTERVIEW, write_folder
from tests.support.plays import serving, until
from tests.support.programs import Program, begin, drive, make_world, refitted
from turnloom.agents.spec import Answer, Task
from turnloom.errors import (
    DefinitionError,
    RunBusy,
    StoreUnavailable,
    UnknownRun,
    UsageError,
)
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import Delivery, Reply
from turnloom.testing import Killed


async def talk(task: Task) -> Answer:
    """Asks twice, then plans once."""
    if task.agent == "Planner":
        return Answer("DONE")
    return Answer("NEXT" if task.number == 3 else f"question {task.number}?")


def rewrite(folder: str, file: str, text: str) -> None:
    Path(folder, file).write_text(text, "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return write_folder(tmp_path, INTERVIEW)


async def test_a_conversation_is_answered_to_its_end(folder: str) -> None:
    async with serving(make_world(talk)) as app:
        run = await app.start(folder, user_id="u1")
        position = 0
        for said in ("this", "that"):
            asked = await until(run, "question.asked", position)
            assert await run.answer(asked.data.question, said) is Delivery.TAKEN
            position = asked.seq
        end = await until(run, "run.finished")
        events = [event async for event in run.events()]
        assert events[-1] == end
        texts = [event.data.text for event in events if event.kind == "user.text"]
        assert texts == ["Begin.", "this", "that"]
        (summary,) = await app.runs()
        assert (summary.status, summary.user, summary.tenant) == ("finished", "u1", "local")


async def test_an_answer_counts_once_and_the_first_one_stays(folder: str) -> None:
    world = make_world(talk)
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        asked = await until(run, "question.asked")
        question = asked.data.question
        assert await run.answer(question, "first") is Delivery.TAKEN
        assert await run.answer(question, "second") is Delivery.REPEATED
        await until(run, "question.asked", asked.seq)
        events = await world.read(run.id)
        texts = [event.data.text for event in events if event.kind == "user.text"]
        assert texts == ["Begin.", "first"]


async def test_answers_that_cannot_be_are_refused_with_a_reason(folder: str) -> None:
    async with serving(make_world(talk)) as app:
        run = await app.start(folder, user_id="u1")
        asked = await until(run, "run.paused")
        with pytest.raises(UsageError) as refused:
            await run.answer("nonsense", "x")
        assert "'nonsense'" in str(refused.value) and "t1.2/ask" in str(refused.value)
        for nonsense in (42, None, "\ud800"):
            with pytest.raises(UsageError) as refused:
                await run.answer(asked.data.waiting_for, nonsense)
            assert repr(nonsense) in str(refused.value)
        with pytest.raises(UnknownRun):
            await app.handle("nobody").answer(None, "x")
        await run.cancel(by="u1")
        with pytest.raises(UsageError) as refused:
            await run.answer(None, "x")
        assert repr(run.id) in str(refused.value)


async def test_a_stale_answer_is_on_record_and_changes_nothing(folder: str) -> None:
    world = make_world(talk)
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        await until(run, "run.paused")
        await world.store.inbox.offer(
            RunKey("local", run.id), "stale", Reply("t9.9/ask", "late", "u1")
        )
        refused = await until(run, "answer.refused")
        assert refused.id == "stale"
        assert refused.data.question == "t9.9/ask"
        assert await run.answer(None, "this") is Delivery.TAKEN
        await until(run, "user.text", refused.seq)


async def test_cancelling_reaches_an_engine_in_mid_call(folder: str) -> None:
    called, gone = asyncio.Event(), asyncio.Event()

    async def stuck(task: Task) -> Answer:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return Answer("never")

    async with serving(make_world(stuck)) as app:
        run = await app.start(folder, user_id="u1")
        await called.wait()
        assert await run.cancel(by="boss", reason="enough")
        assert gone.is_set()
        events = [event async for event in run.events()]
        assert [event.kind for event in events[-3:]] == [
            "cancel.requested",
            "turn.finished",
            "run.cancelled",
        ]
        assert events[-2].data.status == "cancelled"
        assert (events[-1].data.by, events[-1].data.reason) == ("boss", "enough")
        assert "run.resumed" not in [event.kind for event in events]
        assert not await run.cancel(by="boss")


async def test_messages_to_a_run_that_nobody_attends_to(folder: str) -> None:
    """They are put on record at once; the answer waits for a resume, the cancel does not."""
    world = make_world(talk)
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        other = await app.start(folder, user_id="u1")
        await until(run, "run.paused")
        await until(other, "run.paused")
    async with Program(world) as idle:
        answered, cancelled = idle.app.handle(run.id), idle.app.handle(other.id)
        assert await answered.answer(None, "hello") is Delivery.RECORDED
        last = (await world.read(run.id))[-1]
        assert (last.kind, last.data.text) == ("user.text", "hello")
        assert await cancelled.cancel(by="u1")
    assert (await world.read(other.id))[-1].kind == "run.cancelled"
    async with serving(world) as app:
        asked = await until(await app.resume(run.id), "question.asked", last.seq)
        assert asked.data.question != "t1.2/ask"


async def test_trouble_with_the_store_reaches_whoever_follows_the_run(folder: str) -> None:
    """A full disk: a clear error, and the run goes on once there is room."""
    world = make_world(talk)

    class FullDisk:
        full = False

        async def append(
            self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
        ) -> Sequence[Event]:
            if self.full:
                raise StoreUnavailable("The disk is full.")
            return await world.store.log.append(run, events, expected, fence)

        def __getattr__(self, name: str) -> object:
            return getattr(world.store.log, name)

    disk = FullDisk()
    async with serving(refitted(world, log=disk)) as app:
        run = await app.start(folder, user_id="u1")
        paused = await until(run, "run.paused")
        disk.full = True
        await world.store.inbox.offer(
            RunKey("local", run.id), "t1.2/ask/answer", Reply("t1.2/ask", "hi", "u1")
        )
        with pytest.raises(StoreUnavailable):
            await until(run, "question.answered", paused.seq)
        with pytest.raises(StoreUnavailable):  # also for who follows it later
            await until(run, "question.answered")
        disk.full = False
        await app.resume(run.id)
        await until(run, "question.asked", paused.seq)


async def test_an_engine_that_raises_fails_its_turn_and_the_run(folder: str) -> None:
    async def broken(task: Task) -> Answer:
        raise RuntimeError("no model today")

    async def wrong(task: Task) -> str:
        return "not an Answer"

    async def numeric(task: Task) -> Answer:
        return Answer(5)

    async def speechless(task: Task) -> Answer:
        raise RuntimeError("\udcff")

    for engine, message in (
        (broken, "no model today"),
        (wrong, "Answer"),
        (numeric, "Answer"),
        (speechless, "udcff"),
    ):
        async with serving(make_world(engine)) as app:
            run = await app.start(folder, user_id="u1")
            end = await until(run, "run.failed")
            assert message in end.data.message
            kinds = [event.kind async for event in run.events()]
            assert kinds[-3:] == ["model.failed", "turn.finished", "run.failed"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer("Hi.", model=5), "5"),
        (Answer("Hi.", added=["Go on."]), "['Go on.']"),
        (Answer("Hi.", added=("\ud800",)), "tuple"),
    ],
)
async def test_what_an_answer_tells_of_its_making_is_texts(
    answer: Answer, says: str, folder: str
) -> None:
    async def engine(task: Task) -> Answer:
        return answer

    async with serving(make_world(engine)) as app:
        run = await app.start(folder, user_id="u1")
        assert says in (await until(run, "run.failed")).data.message


async def test_a_silent_turn_says_nothing_and_the_work_goes_on(folder: str) -> None:
    async def silent(task: Task) -> Answer:
        return Answer("")

    world = make_world(silent)
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        asked = await until(run, "question.asked")
        assert asked.data.question == "t1.1/ask"
        kinds = [event.kind for event in await world.read(run.id)]
        assert "model.answered" in kinds
        assert "agent.text" not in kinds


async def test_a_definition_with_problems_begins_nothing(tmp_path: Path) -> None:
    broken = write_folder(tmp_path, INTERVIEW | {"handoffs.yaml": "handoff_rules: [{}]"})
    world = make_world(talk)
    with pytest.raises(DefinitionError) as caught:
        await begin(world, broken)
    assert {problem.code for problem in caught.value.diagnostics} == {"W011"}
    assert not await world.store.log.runs("local", 1)


async def test_a_run_is_pinned_to_what_it_began_with(folder: str) -> None:
    """The files change under a waiting run; it goes on as it began."""
    world = make_world(talk)
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        await until(run, "run.paused")
    rewrite(folder, "agents.yaml", "agents: {Other: {system_message: Hi.}}")
    async with serving(world) as app:
        run = await app.resume(run.id)
        assert await run.answer(None, "go on") is Delivery.TAKEN
        event = await until(run, "turn.started", 14)
        assert event.data.agent == "Asker"


KILLS = """
from turnloom.testing import Killed
def ask(task): return "NEXT"
def plan(task): raise Killed
"""


async def test_code_that_changed_is_a_recorded_warning(tmp_path: Path) -> None:
    files = INTERVIEW | {
        "agents.yaml": """
            agents:
              Asker:
                system_message: Ask.
                engine: {type: functions, file: say.py, function: ask}
              Planner:
                system_message: Plan.
                engine: {type: functions, file: say.py, function: plan}
            """,
        "say.py": KILLS,
    }
    folder = write_folder(tmp_path, files)
    world = make_world()
    run = await begin(world, folder)
    with pytest.raises(Killed):
        await drive(world, run)
    rewrite(folder, "say.py", KILLS.replace("raise Killed", "return 'DONE'"))
    async with serving(world) as app:
        again = await app.resume(run)
        resumed = await until(again, "run.resumed")
        assert resumed.data.changed_code == ("say.py",)
        await until(again, "run.finished")


async def test_code_that_changed_under_a_waiting_run_is_recorded_too(tmp_path: Path) -> None:
    say = {"type": "functions", "file": "say.py", "function": "ask"}
    agents = f"agents: {{Asker: {{engine: {say}}}, Planner: {{engine: {say}}}}}"
    files = INTERVIEW | {"agents.yaml": agents, "say.py": "def ask(task): return 'What?'\n"}
    folder = write_folder(tmp_path, files)
    world = make_world()
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        await until(run, "run.paused")
    rewrite(folder, "say.py", "def ask(task): return 'What else?'\n")
    async with serving(world) as app:
        run = await app.resume(run.id)
        resumed = await until(run, "run.resumed")
        assert resumed.data.changed_code == ("say.py",)
        await until(run, "run.paused", resumed.seq)
        assert await run.answer(None, "this") is Delivery.TAKEN
        await until(run, "question.asked", resumed.seq)


async def test_a_run_that_another_process_drives_is_not_taken_up(folder: str) -> None:
    world = make_world(talk)
    run = await begin(world, folder)
    async with Program(world) as program:
        async with world.store.claims.claim(RunKey("local", run)):
            with pytest.raises(RunBusy):
                await program.app.resume(run)
        with pytest.raises(UnknownRun):
            await program.app.resume("nobody")


@pytest.mark.repeats
async def test_many_runs_at_once_do_not_meet(folder: str) -> None:
    seen: dict[str, set[str]] = {}

    async def engine(task: Task) -> Answer:
        seen.setdefault(task.run, set()).update(
            line for line in task.prompt.splitlines() if "user_id" in line
        )
        await asyncio.sleep(0)
        return await talk(task)

    async with serving(make_world(engine)) as app:

        async def whole(number: int) -> str:
            run = await app.start(folder, user_id=f"user-{number}")
            position = 0
            for _ in range(2):
                asked = await until(run, "question.asked", position)
                await run.answer(None, f"by {number}")
                position = asked.seq
            await until(run, "run.finished")
            return run.id

        done = await asyncio.gather(*(whole(number) for number in range(30)))
    for number, run in enumerate(done):
        assert seen[run] == {f'- user_id: "user-{number}"'}
