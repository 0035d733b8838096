"""Where a text is from: the frames and events that have it, and where it entered."""

from collections.abc import AsyncGenerator
from pathlib import Path as FilePath
from typing import Any

import msgspec
import pytest

from tests.explain.shop import Order, Parcel
from tests.explain.test_diff import Draft, Lines, Writes, begin, end, served
from turnloom import (
    Answer,
    BlameExplained,
    Event,
    Flow,
    Loom,
    Task,
    UnknownRun,
    UsageError,
    from_state,
)
from turnloom.agents.spec import ToolCall
from turnloom.explain.logic.blame import TextTrace
from turnloom.explain.logic.texts import TextMatch, TextSearch

SECRET = "tok-4711-very-quiet"
FOUND = "a table at the window"

# A tool finds something, a trigger keeps it, another agent is shown it and repeats it.
SEARCHING = {
    "orchestrator.yaml": "{initial_agent: Clerk, initial_message: Begin., max_turns: 3}",
    "agents.yaml": """
        Clerk: {system_message: "Serve the “guests”\\n  with care."}
        Waiter: {system_message: Wait.}
        """,
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: TEST_TOKEN}}
          spot: {type: string, source: {type: derived, default: none, triggers: [
            {type: tool_response, tool: look, from: spot}]}}
        agents:
          Clerk: {variables: [token]}
          Waiter: {variables: [spot, token]}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Clerk, target_agent: Waiter, handoff_type: after_work}
          - {source_agent: Waiter, target_agent: Clerk, handoff_type: after_work}
        """,
    "tools.yaml": "tools: [{agent: Clerk, file: desk.py, function: look}]",
    "tools/desk.py": f"""
        def look(context_variables):
            return {{"spot": "{FOUND}", "key": context_variables["token"]}}
        """,
}
SAID = (Answer(calls=(ToolCall("look"),)), "I have looked.", f"There is {FOUND}.", "Fine.")


@pytest.fixture
async def app(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Loom]:
    monkeypatch.setenv("TEST_TOKEN", SECRET)
    async with Loom(store="memory", engine=Lines(*SAID)) as app:
        yield app


def entered(found: BlameExplained) -> list[str]:
    return [each.kind for each in found.entries]


async def test_a_text_is_followed_from_a_frame_to_the_tool_that_found_it(
    app: Loom, tmp_path: FilePath
) -> None:
    run = await served(app, tmp_path, SEARCHING)
    found = await app.explain.blame(run, FOUND)
    events = await app.history.events(run)
    (source,) = found.entries
    assert (source.kind, source.where, source.run) == ("tool.returned", "result.spot", run)
    assert {each.entered for each in found.places} == {source.seq}
    frames = [each for each in found.places if each.kind == "frame.assembled"]
    assert [(each.turn, each.agent, each.where.split()[0]) for each in frames] == [
        (2, "Waiter", "variable"),
        (3, "Clerk", "history"),
    ]
    assert events[frames[0].origin - 1].kind == "context.changed"
    assert events[frames[1].origin - 1].kind == "agent.text" and frames[1].messages == 1
    assert {"context.changed", "agent.text"} <= {each.kind for each in found.places}
    assert all(each.exact and FOUND in each.excerpt for each in found.places)
    assert FOUND in str(found) and f"seq {source.seq} tool.returned" in str(found)


async def test_white_space_and_quotes_are_folded(app: Loom, tmp_path: FilePath) -> None:
    run = await served(app, tmp_path, SEARCHING)
    found = await app.explain.blame(run, 'Serve the "guests" with   care.')
    assert [each.where for each in found.entries] == ["files.agents.yaml"]
    assert not any(each.exact for each in found.places)
    assert [each.turn for each in found.places if each.kind == "frame.assembled"] == [1, 3]
    assert not (await app.explain.blame(run, "serve the guests")).places


@pytest.mark.parametrize("text", ["", "   a   \n", "7 chars", "\t\n " * 5])
async def test_short_texts_are_refused(app: Loom, tmp_path: FilePath, text: str) -> None:
    run = await served(app, tmp_path, SEARCHING)
    with pytest.raises(UsageError, match="8"):
        await app.explain.blame(run, text)


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        SECRET[:9],
        SECRET[-9:],
        "⟨secret:token⟩",
        "secret:token",
        'token: "⟨secret',
    ],
)
async def test_masked_text_never_matches(app: Loom, tmp_path: FilePath, text: str) -> None:
    run = await served(app, tmp_path, SEARCHING)
    found = await app.explain.blame(run, text)
    assert not found.places and not found.entries
    shown = await app.explain.blame(run, FOUND)
    assert SECRET not in msgspec.json.encode(shown).decode() + str(shown)


def test_text_on_both_sides_of_a_secret_does_not_match() -> None:
    search = TextSearch("before it after it")
    assert search.find("before it after it")
    assert not search.find("before it ⟨secret:token⟩after it")
    assert not search.find("before it⟨secret:x⟩ after it") and not search.find("x ⟨secret:befo")


async def test_tenants_stay_apart(app: Loom, tmp_path: FilePath) -> None:
    run = await served(app, tmp_path, SEARCHING, app_id="acme")
    with pytest.raises(UnknownRun):
        await app.explain.blame(run, FOUND, app_id="zeta")


async def pack(task: Task) -> Any:
    """Say on the parcel what was ordered."""
    (order,) = task.inputs
    return Parcel(label=f"contains {order.payload['item']}")


async def test_artifacts_are_followed_into_other_runs() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(pack)
        board.agent("driver").consumes(Parcel, Order).with_engines(Lines(None, None))
        first = await board.publish(Order(item="forty pounds of tea"), correlation_id="c")
        await board.run_until_idle()
        second = await board.publish(Order(item="ink"), correlation_id="c")
        await board.run_until_idle()
        assert first.run and second.run and first.run != second.run
        own = await app.explain.blame(first.run, "forty pounds of tea")
        later = await app.explain.blame(second.run, "forty pounds of tea")
    assert entered(own) == ["artifact.published"] and not own.entries[0].from_run
    assert {"frame.assembled", "agent.output"} <= {each.kind for each in own.places}
    (source,) = later.entries
    assert source.from_run == first.run and source.artifact
    assert [(each.run, each.seq, each.kind) for each in source.earlier] == [
        (first.run, own.entries[0].seq, "artifact.published")
    ]
    assert first.run in str(later)


async def test_the_state_of_a_flow_is_followed_to_where_it_began() -> None:
    step = Writes(Lines("Written: something to begin with"))
    async with Loom(store="memory") as app:
        flow = Flow("drafts", Draft).start_with(begin)
        flow = flow.then(step, context=[from_state("text")]).finally_(end)
        outcome = await app.run(flow, Draft(text="something to begin with"))
        given = await app.explain.blame(outcome.run_id, "something to begin with")
        written = await app.explain.blame(outcome.run_id, "Written: something")
        declared = await app.explain.blame(outcome.run_id, "Write it better.")
    assert entered(given) == ["state.given"] and given.entries[0].where == "state.text"
    assert "step.completed" in {each.kind for each in given.places}
    assert entered(written) == ["agent.text"]
    assert [each.where for each in declared.places] == ["prompt steps.Writes"]


class CountingSearch(TextSearch):
    """Counts the characters that it searches."""

    searched = 0

    def find(self, text: str, where: str = "") -> TextMatch | None:
        self.searched += len(text) + 1
        return super().find(text, where)


async def test_the_cost_is_linear_in_the_log(tmp_path: FilePath) -> None:
    chat = {
        "orchestrator.yaml": "{initial_agent: A, initial_message: Begin., max_turns: 80}",
        "agents.yaml": "A: {system_message: Talk.}",
        "handoffs.yaml": """
            handoff_rules: [{source_agent: A, target_agent: A, handoff_type: after_work}]
            """,
    }
    async with Loom(store="memory", engine=Lines(*["the same old song"] * 80)) as app:
        events = await app.history.events(await served(app, tmp_path, chat))
    half = [event for event in events if event.seq <= len(events) // 2]
    costs = [_cost(log) for log in (half, events)]
    assert costs[1][0] <= 2.2 * costs[0][0] and costs[1][1] <= 2.2 * costs[0][1]


def _cost(events: list[Event]) -> tuple[int, int]:
    search = CountingSearch("the same old song")
    places = [*TextTrace(events, search).places()]
    return search.searched, len(places)
