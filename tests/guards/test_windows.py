"""Windows of models: a run warns before one is full, and a call that does not fit is not made."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.guards.runs import Says, go_on
from tests.reaction.scenes import Clerk, Order, Parcel, pack
from tests.support.folders import write_folder
from tests.support.plays import every, last, only
from tests.support.world import Kill, World, conversing
from turnloom import AgentStep, Answer, ContextTooLarge, Event, Flow, Loom, Task, ToolCall
from turnloom.explanations import Timeline

# What an agent says each time: 25 tokens, with its name before it 26 or so.
LINE = "x" * 100


def folder(where: Path, **orchestrator: Any) -> str:
    """Two agents who speak in turn, and never come to an end by themselves."""
    pairs = (("A", "B"), ("B", "A"))
    files = {
        "orchestrator.json": {"max_turns": 12, **orchestrator},
        "agents.json": {name: {"system_message": f"You are {name}."} for name in "AB"},
        "handoffs.json": [
            {"source_agent": a, "target_agent": b, "handoff_type": "after_work"} for a, b in pairs
        ],
    }
    return write_folder(where, {name: json.dumps(said) for name, said in files.items()})


async def converse(where: Path, engine: Any, **settings: Any) -> tuple[list[Event], Timeline]:
    async with Loom(store="memory", engine=engine, **settings) as app:
        run = await app.start(folder(where))
        await run.finished()
        return list(await app.history.events(run.id)), await app.explain.timeline(run.id)


async def test_a_window_that_fills_is_told_once_for_each_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "turnloom.guards"):
        events, timeline = await converse(tmp_path, Says(LINE), window=200)
    near = every(events, "window.neared")
    assert [each.agent for each in near] == ["A", "B"]
    assert all(0.8 * 200 <= each.tokens <= 200 == each.window for each in near)
    frames = {each.turn: each.tokens for each in every(events, "frame.assembled")}
    assert near[0].tokens == frames[near[0].turn]
    assert next(iter(near[0].largest)) == "what was said"
    earlier = [tokens for turn, tokens in frames.items() if turn < near[0].turn]
    assert all(tokens < 160 for tokens in earlier)
    told = [record.getMessage() for record in caplog.records if record.name == "turnloom.guards"]
    assert len(told) == 2 and "200 tokens" in told[0] and "`context.budget`" in told[0]
    assert [row.who for row in timeline.rows if row.what == "window"] == ["A", "B"]


async def test_a_call_that_does_not_fit_fails_its_turn(tmp_path: Path) -> None:
    engine = Says(LINE)
    events, _ = await converse(tmp_path, engine, window=200)
    failed = only(events, "model.failed")
    assert failed.error == ContextTooLarge.__name__
    shown = last(events, "frame.assembled")
    said = f"what was said {shown.history.tokens:,}"
    for word in ("200 tokens", f"{shown.tokens:,} tokens", said, f"agents.{shown.agent}", "budget"):
        assert word in failed.message
    assert len(engine.tasks) == failed.turn - 1, "the model was not asked"
    assert last(events, "turn.finished").status == "failed"
    assert ContextTooLarge.__name__ in last(events, "run.failed").message


async def test_exactly_the_window_fits(tmp_path: Path) -> None:
    events, _ = await converse(tmp_path / "free", Says(LINE))
    sizes = [each.tokens for each in every(events, "frame.assembled")]
    assert not every(events, "window.neared"), "nothing is known of a window, and nothing is said"
    events, _ = await converse(tmp_path / "fits", Says(LINE), window=sizes[3])
    assert only(events, "model.failed").turn == 5


async def test_an_engine_that_knows_its_models_is_asked(tmp_path: Path) -> None:
    class Small(Says):
        def context_window(self, model: str | None) -> int | None:
            return 200 if model is None else None

    events, _ = await converse(tmp_path, Small(LINE))
    assert {each.window for each in every(events, "window.neared")} == {200}
    events, _ = await converse(tmp_path / "set", Small(LINE), window=100_000)
    assert not every(events, "window.neared"), "a setting counts in place of what engines know"


@pytest.mark.parametrize("given", [0, -1, "many", True])
async def test_an_engine_that_gives_no_window_is_told_so(tmp_path: Path, given: Any) -> None:
    class Odd(Says):
        def context_window(self, model: str | None) -> Any:
            return given

    events, _ = await converse(tmp_path, Odd(LINE))
    assert only(events, "model.failed").error == "UsageError"


async def test_a_refusal_of_the_engine_says_what_was_shown(tmp_path: Path) -> None:
    async def refusing(task: Task) -> Answer:
        raise ContextTooLarge("The provider says no.")

    events, _ = await converse(tmp_path, refusing)
    message = only(events, "model.failed").message
    assert message.startswith("The provider says no.") and "agents.A" in message


async def test_what_was_exchanged_in_the_turn_counts(tmp_path: Path) -> None:
    class Calling(Says):
        async def __call__(self, task: Task) -> Answer:
            self.tasks.append(task)
            return Answer(LINE, calls=(ToolCall("look", {}),))

        def context_window(self, model: str | None) -> int | None:
            return 400

    engine = Calling()
    events = await go_on(tmp_path, {}, engine=engine)
    failed = only(events, "model.failed")
    assert failed.error == ContextTooLarge.__name__
    assert "calls and results of this turn" in failed.message
    assert len(engine.tasks) > 1 and only(events, "window.neared").turn == 1


async def test_it_is_told_once_whatever_is_killed(tmp_path: Path) -> None:
    world = World(engine=Says(LINE))
    kills = Kill("window.neared"), Kill("model.answered", 2)
    await world.lives(conversing(folder(tmp_path)), *kills, window=200)
    ((_, events),) = (await world.logs()).items()
    assert [each.agent for each in every(events, "window.neared")] == ["A", "B"]


async def test_a_selector_is_guarded_as_agents_are(tmp_path: Path) -> None:
    async def engine(task: Task) -> Answer:
        if task.output is None:
            return Answer(LINE)
        return Answer(output={"agent": "B" if "- B:" in task.system else "A"})

    async with Loom(store="memory", engine=engine, window=200) as app:
        agents = {name: {"system_message": "Speak."} for name in "ABC"}
        setup = {"orchestration_pattern": "AutoPattern", "max_turns": 9, "initial_agent": "A"}
        files = {"orchestrator.json": json.dumps(setup), "agents.json": json.dumps(agents)}
        run = await app.start(write_folder(tmp_path, files))
        await run.finished()
        events = list(await app.history.events(run.id))
    failed = only(events, "model.failed")
    assert (failed.agent, failed.error) == ("selector", "ContextTooLarge")
    assert "selector" in [each.agent for each in every(events, "window.neared")]


async def test_a_reaction_to_more_than_fits_fails() -> None:
    async with Loom(store="memory", window=40) as app:
        board = app.board()
        clerk = Clerk(pack)
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(clerk)
        await board.publish(Order(item="x" * 400))
        failed = await board.run_until_idle(raise_errors=False)
        assert "ContextTooLarge" in str(failed.exceptions) and not clerk.tasks


class Notes(BaseModel):
    """What a flow knows."""

    model_config = ConfigDict(frozen=True)
    text: str = ""
    said: str = ""


class Write(AgentStep[Notes]):
    """A step that is shown the whole text."""

    def instructions(self) -> str:
        """What it is for."""
        return "Write."

    def user_prompt(self, state: Notes) -> str:
        """What it is asked."""
        return state.text

    def apply(self, state: Notes, answer: Any, context: Any) -> dict[str, Any]:
        """What comes of its answer."""
        return {"said": answer}


async def test_a_step_can_handle_it() -> None:
    async def shorten(state: Notes) -> dict[str, Any]:
        return {"said": "It was too much."}

    flow = Flow("notes", Notes).start_with(
        Write, on_failure={ContextTooLarge: [shorten]}, recover=True
    )
    async with Loom(store="memory", engine=Says("Fine."), window=40) as app:
        outcome = await app.run(flow, Notes(text="x" * 400))
        assert outcome.state.said == "It was too much."
        assert (await app.run(flow, Notes(text="x"))).state.said == "Fine."
