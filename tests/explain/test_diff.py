"""What changed between two turns: segments, words, and the event behind each change."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from tests.explain.shop import Order, Parcel
from tests.golden.recording import SCENES
from tests.support.folders import write_folder
from tests.support.world import World
from turnloom import (
    AgentStep,
    Answer,
    Flow,
    Loom,
    Path,
    Task,
    TurnDiff,
    UnknownRun,
    UsageError,
    from_literal,
    from_state,
)
from turnloom.agents.events import TurnStarted
from turnloom.explain.logic.diff import ComparedRun, explain_diff
from turnloom.explain.logic.words import word_diff

SECRET = "tok-4711-quiet"

DESK = {
    "orchestrator.yaml": "{initial_agent: Clerk, initial_message: Begin., max_turns: 3}",
    "agents.yaml": "Clerk: {system_message: Serve the guests well.}",
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: TEST_TOKEN}}
          tier: {type: string, source: {type: static, value: beta}}
          stage: {type: string, source: {type: derived, default: asking the guest, triggers: [
            {type: agent_text, agent: Clerk, match: {contains: NEXT}, value: helping the guest}]}}
        agents: {Clerk: {variables: [token, tier, stage]}}
        """,
    "handoffs.yaml": """
        handoff_rules: [{source_agent: Clerk, target_agent: Clerk, handoff_type: after_work}]
        """,
}


class Lines:
    """Says one line after the other."""

    def __init__(self, *said: Any) -> None:
        self.said = iter(said)

    async def __call__(self, task: Task) -> Any:
        line = next(self.said)
        return Answer(line) if isinstance(line, str) else line


@pytest.fixture
async def app(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Loom]:
    monkeypatch.setenv("TEST_TOKEN", SECRET)
    async with Loom(store="memory", engine=Lines(*["Hm.", "NEXT", "Well."] * 3)) as app:
        yield app


async def served(app: Loom, folder: FilePath, files: dict[str, str] = DESK, **given: Any) -> str:
    run = await app.start(write_folder(folder, files), **given)
    await run.finished()
    return run.id


def summed(diff: TurnDiff) -> list[tuple[str, str, str, str]]:
    return [(each.change, each.kind, each.origin, each.cause.kind) for each in diff.changes]


async def test_a_variable_changed_because_of_its_trigger(app: Loom, tmp_path: FilePath) -> None:
    run = await served(app, tmp_path)
    events = await app.history.events(run)
    diff = await app.explain.diff(run, 3)
    assert (diff.before.turn, diff.after.turn) == (2, 3)
    (said,) = [event for event in events if event.kind == "agent.text" and event.data.turn == 2]
    changed = ("changed", "variable", "context_variables.stage", "context.changed")
    assert summed(diff) == [
        changed,
        ("added", "history", f"event {said.seq} (Clerk)", "agent.text"),
    ]
    stage = diff.changes[0]
    assert events[stage.cause.seq - 1].data.name == "stage"
    assert [link.kind for link in stage.cause.causes][:3] == [
        "agent.text",
        "model.answered",
        "model.called",
    ]
    assert [(each.change, each.text) for each in stage.words if each.change != "same"] == [
        ("gone", "asking"),
        ("added", "helping"),
    ]
    assert "[-asking-]{+helping+} the guest" in str(diff) and not diff.reordered
    assert diff.same == 6 and diff.tokens_after > diff.tokens_before


async def test_any_turn_is_compared_with_any_other(app: Loom, tmp_path: FilePath) -> None:
    run = await served(app, tmp_path)
    assert (await app.explain.diff(run, 1, 3)).before.turn == 3
    assert not (await app.explain.diff(run, 2, 2)).changes
    assert (await app.explain.diff(run, 3, agent="Clerk")).before.turn == 2
    with pytest.raises(UsageError, match="first turn of 'Clerk'"):
        await app.explain.diff(run, 1)
    with pytest.raises(UsageError):
        await app.explain.diff(run, 3, 4)
    with pytest.raises(UsageError):
        await app.explain.diff(run, 3, other_run=run)


async def test_an_edited_definition_is_named(app: Loom, tmp_path: FilePath) -> None:
    first = await served(app, tmp_path / "a")
    files = {**DESK, "agents.yaml": "Clerk: {system_message: Serve the guests at once.}"}
    second = await served(app, tmp_path / "b", files)
    diff = await app.explain.diff(second, 1, 1, other_run=first)
    (change,) = diff.changes
    assert (change.kind, change.origin, change.cause.kind) == (
        "instruction",
        "agents.Clerk",
        "run.started",
    )
    assert "agents.yaml" in change.cause.says and change.cause.run == second != diff.before.run


async def test_secrets_stay_masked_and_tenants_apart(app: Loom, tmp_path: FilePath) -> None:
    mine = await served(app, tmp_path / "a", app_id="acme")
    theirs = await served(app, tmp_path / "b", app_id="zeta")
    diff = await app.explain.diff(mine, 3, app_id="acme")
    assert SECRET not in msgspec.json.encode(diff).decode() + str(diff)
    for run, other in ((mine, theirs), (theirs, mine)):
        with pytest.raises(UnknownRun):
            await app.explain.diff(run, 2, 1, other_run=other, app_id="acme")


async def test_what_a_budget_leaves_out_is_gone_because_of_it(
    app: Loom, tmp_path: FilePath
) -> None:
    files = {
        **DESK,
        "agents.yaml": """
            Clerk:
              system_message: Serve.
              context: {sources: [{history: {last: 1}}]}
            """,
    }
    run = await served(app, tmp_path, files)
    gone = [each for each in (await app.explain.diff(run, 2)).changes if each.change == "gone"]
    assert [(each.kind, each.cause.kind) for each in gone] == [
        ("context.history", "frame.assembled")
    ]
    assert gone[0].withheld.startswith("filtered")


async def test_artifacts_on_a_board_come_from_their_publications() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(
            Lines(Parcel(label="one"), Parcel(label="two"))
        )
        runs: list[str] = []
        for item in ("tea", "ink"):
            order = await board.publish(Order(item=item), correlation_id="c", id=item)
            await board.run_until_idle()
            runs.append(order.run or "")
        events = await app.history.events(runs[1])
        diff = await app.explain.diff(runs[1], 1, 1, other_run=runs[0])
    causes = {each.origin: events[each.cause.seq - 1].data for each in diff.changes}
    assert causes["artifact ink"].artifact.id == "ink"
    assert causes["artifact tea"].artifacts == ("ink",)
    assert causes["DefaultCorrelationProvider"].kind == "context.gathered"


class Draft(BaseModel):
    """What a flow writes."""

    model_config = ConfigDict(frozen=True)
    text: str = "nothing yet"
    passes: int = 0


class Writes(AgentStep[Draft]):
    """Writes a better text."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def instructions(self) -> str:
        return "You write."

    def user_prompt(self, state: Draft) -> str:
        return "Write it better."

    def apply(self, state: Draft, answer: Any, context: Any) -> Any:
        return {"text": answer, "passes": state.passes + 1}


def begin(state: Draft) -> None:
    """Nothing."""


def end(state: Draft) -> None:
    """Nothing."""


def is_done(state: Draft) -> bool:
    return state.passes == 2


async def test_the_state_of_a_flow_changed_because_of_a_step() -> None:
    step = Writes(Lines("a good text", "a better text"))
    context = [from_state("text", title="So far"), from_literal("Be brief.")]
    body = Path().then(step, context=context)
    async with Loom(store="memory") as app:
        flow = Flow("drafts", Draft).start_with(begin)
        flow = flow.repeat_until(is_done, body, max_iterations=3, name="loop").finally_(end)
        outcome = await app.run(flow, Draft())
        events = await app.history.events(outcome.run_id)
        diff = await app.explain.diff(outcome.run_id, 2)
    (change,) = diff.changes
    assert (change.change, change.kind, change.cause.kind) == (
        "changed",
        "context.state",
        "step.completed",
    )
    assert events[change.cause.seq - 1].data.update["text"] == "a good text"


@pytest.mark.parametrize(
    "name", ["message_hooks_killed", "a_correlation_goes_on", "a_flow_with_agents"]
)
async def test_each_change_of_a_scene_has_its_event(name: str, tmp_path: FilePath) -> None:
    world = World()
    await SCENES[name](world, tmp_path)
    for events in (await world.logs()).values():
        turns = [event.data.turn for event in events if isinstance(event.data, TurnStarted)]
        for old, new in zip(turns, turns[1:], strict=False):
            diff = explain_diff(ComparedRun(events), old, ComparedRun(events), new)
            for change in diff.changes:
                assert events[change.cause.seq - 1].kind == change.cause.kind
                assert change.cause.seq <= diff.after.seq and change.cause.says
                _is_whole(change.words, change.before, change.after)


texts = st.text(alphabet="ab \n⟨⟩.", max_size=60)


@given(texts, texts)
def test_words_add_up_to_both_texts(before: str, after: str) -> None:
    _is_whole(word_diff(before, after), before, after)


def test_long_texts_are_compared_in_time() -> None:
    before = "".join(f"line {n} {'x y ' * (n % 7)}\n" for n in range(30_000))
    words = word_diff(before, before.replace("line 17 ", "row 17 ") + "z " * 9_000)
    _is_whole(words, before, before.replace("line 17 ", "row 17 ") + "z " * 9_000)
    assert ("gone", "line") in [(each.change, each.text) for each in words]


def _is_whole(words: Sequence[Any], before: str, after: str) -> None:
    assert "".join(each.text for each in words if each.change != "added") == before
    assert "".join(each.text for each in words if each.change != "gone") == after
