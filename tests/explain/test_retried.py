"""What was so before a retry, and what is done again."""

from pathlib import Path

from tests.flow.ledgers import Ledger, Trip, acting, stumble
from tests.runtime import test_retry as talks
from tests.support.folders import write_folder
from turnloom import Answer, Flow, Loom, Task


async def test_the_timeline_shows_both_lives_of_a_turn(tmp_path: Path) -> None:
    talks.stones.add("Buyer 1.1")
    async with Loom(store="memory", engine=talks.clerk) as app:
        run = await app.start(write_folder(tmp_path, talks.SHOP))
        await run.finished()
        talks.stones.clear()
        await run.retry()
        await run.finished()
        rows = (await app.explain.timeline(run.id)).rows
    turns = [row for row in rows if row.what == "turn 1"]
    assert [row.note.startswith("again") for row in turns] == [False, True]
    assert "failed" in turns[0].note and "failed" not in turns[1].note
    (retried,) = [row for row in rows if row.what == "retried"]
    assert turns[0].seq < retried.seq < turns[1].seq
    tools = [(row.depth, row.seq > turns[1].seq) for row in rows if row.what == "tool"][:2]
    assert tools == [(1, False), (1, True)]


async def test_the_timeline_shows_both_lives_of_a_step() -> None:
    ledger = Ledger()
    ledger.set_trap(2, stumble)
    async with Loom(store="memory") as app:
        run = await app.start(Flow("one", Trip).start_with(acting(ledger, "pay")), Trip())
        await run.outcome()
        await run.retry()
        await run.outcome()
        steps = [row for row in (await app.explain.timeline(run.id)).rows if row.what == "step"]
    assert ["failed" in row.note for row in steps] == [True, False]
    assert all(row.seconds is not None for row in steps)


COUNTING = {
    "orchestrator.yaml": "{initial_agent: A, max_turns: 2}",
    "agents.yaml": "A: {system_message: Count.}",
    "context_variables.yaml": """
        definitions:
          last: {type: string, source: {type: derived, default: none, triggers: [
            {type: agent_text, agent: A, match: {regex: '(.*)'}, capture: 1}]}}
        """,
    "handoffs.yaml": "- {source_agent: A, target_agent: A, handoff_type: after_work}",
}


async def test_a_variable_at_an_event_is_as_it_was_then(tmp_path: Path) -> None:
    said = iter(["one", "two", "three"])

    async def count(task: Task) -> Answer:
        return Answer(next(said))

    async with Loom(store="memory", engine=count) as app:
        run = await app.start(write_folder(tmp_path, COUNTING))
        end = (await run.finished()).seq
        await run.retry(2)
        await run.finished()
        for at in range(3, len(await app.history.events(run.id)) + 1):
            explained = await app.explain.variable(run.id, "last", at=at)
            state = await app.history.state(run.id, at=at)
            (variable,) = [each for each in state.variables if each.name == "last"]
            assert explained.value == variable.value, at
        assert (await app.explain.variable(run.id, "last", at=end)).value == "two"
        assert (await app.explain.variable(run.id, "last")).value == "three"
