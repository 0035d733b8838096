"""The state of a run at any of its events, in all three forms."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from tests.support.folders import write_folder
from tests.support.raising import raising
from tests.support.world import Kill, World, at_rest
from turnloom import After, Flow, Labelled, Loom, Private, Public, Task, UsageError, artifact_type
from turnloom.explain.spec.state import StateExplained

TALK = {
    "orchestrator.yaml": "{initial_agent: Poet, human_in_the_loop: true}",
    "agents.yaml": "{Poet: {system_message: Rhyme., engine: scripted}}",
    "context_variables.yaml": """
        definitions:
          key: {type: string, secret: true, source: {type: environment, env_var: TEST_KEY}}
          done: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_text, agent: Poet, match: {equals: NEXT}, hide: true}]}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Poet, target_agent: terminate, handoff_type: condition,
             condition: '${done} == True'}
          - {source_agent: Poet, target_agent: user, handoff_type: after_work}
        """,
    "script.yaml": "{agents: {Poet: [Roses are red., NEXT]}}",
}


class Draft(BaseModel, frozen=True):
    text: str = ""
    passes: int = 0


def write(state: Draft) -> dict[str, Any]:
    return {"text": "draft"}


def polish(state: Draft) -> dict[str, Any]:
    return {"passes": state.passes + 1}


def left(state: Draft) -> dict[str, Any]:
    return {"text": "left"}


def right(state: Draft) -> dict[str, Any]:
    return {"passes": 7}


def merge(state: Draft) -> dict[str, Any]:
    return {}


def close(state: Draft) -> dict[str, Any]:
    return {}


def drafts() -> Flow[Draft]:
    return (
        Flow("drafts", Draft)
        .start_with(write)
        .repeat_until(lambda state: state.passes > 1, polish, name="loop")
        .fork(left, right, join=merge)
        .finally_(close)
    )


@artifact_type
class Note(BaseModel):
    text: str


@artifact_type
class Reply(BaseModel):
    text: str


def desk(app: Loom, release: anyio.Event | None = None) -> Any:
    """A board whose clerk answers, if need be not before it is released."""

    async def answer(task: Task) -> list[Reply]:
        if release is not None:
            await release.wait()
        return [Reply(text="yes")]

    board = app.board("desk")
    board.agent("clerk").description("answers").consumes(Note).publishes(Reply).with_engines(answer)
    board.agent("boss").description("reads").consumes(Reply).labels("staff").with_engines(
        lambda task: None
    )
    return board


async def states(app: Loom, run: str) -> list[StateExplained]:
    length = len(await app.history.events(run))
    return [await app.history.state(run, at=at) for at in range(1, length + 1)]


def values(state: StateExplained) -> dict[str, Any]:
    return {each.name: each.value for each in state.variables}


async def test_a_conversation(tmp_path: Path) -> None:
    world = World()
    world.environment.values["TEST_KEY"] = "s3cret-value"
    async with world.open() as app:
        run = await app.start(write_folder(tmp_path / "Talk", TALK))
        await at_rest(run)
        waiting = await app.history.state(run.id)
        assert (waiting.status, waiting.turns, waiting.work) == ("paused", 1, ())
        assert waiting.speakers and (waiting.speakers.last, waiting.speakers.next) == (
            "Poet",
            "user",
        )
        (question,) = waiting.questions
        assert question == await run.question()
        assert values(waiting)["done"] is False
        assert "s3cret-value" not in str(waiting) and "secret" in str(values(waiting)["key"])
        await run.answer(None, "Go on.")
        await run.finished()
        over = await app.history.state(run.id)
        assert (over.status, over.questions, values(over)["done"]) == ("finished", (), True)
        before = await app.history.state(run.id, at=waiting.at)
        assert before.questions == waiting.questions and before.events > waiting.events
        first, *others = await states(app, run.id)
        assert first.status == "started" and values(first) == {}
        assert {each.name: each.reason for each in first.absent} == {
            "key": "not loaded yet",
            "done": "not loaded yet",
        }
        assert any(each.work and each.work[0].who == "Poet" for each in others)
        since = [each for each in over.variables if each.name == "done"][0]
        changed = await app.explain.variable(run.id, "done")
        assert (since.since, since.writer) == (changed.changes[-1].seq, changed.changes[-1].writer)
        assert "<" in over._repr_html_() and repr(over) == str(over)


async def test_a_flow_and_its_position() -> None:
    async with World().open() as app:
        outcome = await app.run(drafts(), Draft())
        found = await states(app, outcome.run_id)
    places = {(strand.place, strand.passes) for each in found for strand in each.strands}
    assert {("loop[1]/polish", (1,)), ("loop[2]/polish", (2,))} <= places
    assert max(len(each.strands) for each in found) == 3
    assert any(each.work and each.work[0].who == "write" for each in found)
    last = found[-1]
    (main,) = [each for each in last.strands if not each.id]
    assert last.status == "finished" and main.status == "done" and not last.work
    assert Draft(**main.state) == outcome.state
    assert not last.missing


async def test_a_board_as_its_agents_see_it() -> None:
    world = World()
    async with world.open() as app:
        board = desk(app, release := anyio.Event())
        soon = world.clock.now() + timedelta(hours=1)
        for visibility in (Public(), Private({"boss"}), Labelled({"staff"}), After(soon, Public())):
            await board.publish(Note(text="hello"), visibility=visibility, correlation_id="c")
        release.set()
        await board.run_until_idle()
        (first, *_) = reversed(await app.runs())
        run = first.run

        async def seen(agent: str | None, at: int | None = None) -> int:
            return len((await app.history.state(run, agent=agent, at=at)).artifacts)

        everything = await seen(None)
        assert everything > 4
        assert await seen("boss") == everything - 1
        assert await seen("clerk") == everything - 3
        assert await seen("boss", at=2) == 0
        uses = {each.use for state in await states(app, run) for each in state.queued}
        assert {"not offered yet", "in turn 1", "hidden"} <= uses
        with pytest.raises(UsageError, match="boss"):
            await app.history.state(run, agent="unknown")


async def test_a_program_without_the_declaration_says_what_is_missing() -> None:
    world = World()

    async def begin(app: Loom) -> None:
        await desk(app).publish(Note(text="hello"))
        await app.run(drafts(), Draft())

    assert not await world.live(begin, Kill("step.started", 2))
    async with world.open() as app:
        runs = {each.workflow: each.run for each in await app.runs()}
        flow = await app.history.state(runs["drafts"])
        assert flow.missing and not flow.strands and flow.status == "running"
        assert [(each.what, each.number) for each in flow.work] == [("step", 2)]
        board = await app.history.state(runs["desk"], agent="boss")
        assert board.missing and board.artifacts and not board.queued
        app.register_flow(drafts())
        flow = await app.history.state(runs["drafts"])
        assert not flow.missing and flow.strands[0].place == "loop[1]/polish"


async def test_what_does_not_exist_is_refused() -> None:
    async with World().open() as app:
        outcome = await app.run(drafts(), Draft())
        last = len(await app.history.events(outcome.run_id))
        for at in (0, -1, last + 1):
            with raising(UsageError):
                await app.history.state(outcome.run_id, at=at)
        with raising(UsageError):
            await app.history.state(outcome.run_id, agent="clerk")
        with raising(UsageError):
            await app.history.state("unknown")


async def test_a_run_that_was_retried_has_its_states_of_before() -> None:
    broken = [True]

    def fragile(state: Draft) -> dict[str, Any]:
        if broken.pop():
            raise ValueError("no")
        return {"passes": 3}

    flow = Flow("fragile", Draft).start_with(write).finally_(fragile)
    async with World().open() as app:
        run = await app.start(flow, Draft())
        failed = (await run.finished()).seq
        broken[:] = [False]
        events = await app.history.events(run.id)
        written = next(event.seq for event in events if event.kind == "step.completed")
        await run.retry(at=written, tools="live")
        await run.finished()
        found = await states(app, run.id)
        assert (found[failed - 1].status, found[failed].status) == ("failed", "running")
        assert found[-1].status == "finished"
        assert found[-1].strands[0].state == {"text": "draft", "passes": 3}
