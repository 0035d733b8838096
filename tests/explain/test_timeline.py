"""A run at a glance, and the one door to all explanations."""

import msgspec
import pytest

from tests.explain.conftest import FLOW, Engine, Tell, Told, tells
from tests.explain.workshop import CHATTER, pattern
from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.agents.events import ToolsOffered
from turnloom.agents.spec import ToolSchema, Usage
from turnloom.errors import UnknownRun, UsageError
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.spec.route import RouteExplained
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained


async def test_there_is_a_row_for_each_turn_question_route_and_the_end(told: Told) -> None:
    found = timeline(told.events)
    assert (found.status, found.turns, found.events) == ("finished", 5, len(told.events))
    assert (found.user, found.tenant, found.workflow) == ("u1", "local", "Flow")
    what = [row.what.split()[0] for row in found.rows]
    assert what.count("turn") == 5 and what.count("question") == 2 and what[-1] == "finished"
    assert what.count("route") == sum(each.kind == "route.decided" for each in told.events)
    assert found.usage.input_tokens == 150 and found.usage.output_tokens == 15
    for row in found.rows:
        began = told.events[row.seq - 1]
        assert row.at == began.at
        if row.what.startswith("turn"):
            assert row.tokens and row.usage and row.seconds is not None and row.seconds >= 0
    (last,) = [row for row in found.rows if row.what == "finished"]
    assert last.seconds == found.seconds
    assert tells(str(found), "u1", '"one"') and "\x1b" not in str(found)
    assert msgspec.to_builtins(found)["rows"][0]["what"] == "route"


async def test_runs_that_wait_or_failed_say_so(tell: Tell) -> None:
    waiting = timeline((await tell(answers=())).events)
    assert waiting.status == "waiting" and waiting.rows[-1].seconds is None
    failed = timeline((await tell(said={"Asker": []}, answers=())).events)
    assert failed.status == "failed" and "nothing left to say" in str(failed)
    with pytest.raises(UsageError):
        timeline([])


async def test_the_app_explains(told: Told, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with Loom(store="memory", engine=Engine()) as app:
        run = await app.start(write_folder(tmp_path_factory.mktemp("flow"), FLOW))
        async for event in run.events():
            if event.kind == "run.paused":
                break
        turn = await app.explain.turn(run.id, 1)
        assert isinstance(turn, TurnExplained) and (turn.turn, turn.agent) == (1, "Asker")
        assert await app.explain.turn(run.id, 1, agent="Asker") == turn
        variable = await app.explain.variable(run.id, "tier", at=3)
        assert isinstance(variable, VariableExplained) and (variable.at, variable.present) == (
            3,
            True,
        )
        route = await app.explain.route(run.id, 1)
        assert isinstance(route, RouteExplained) and route.target == "Asker"
        found = await app.explain.timeline(run.id)
        assert isinstance(found, Timeline) and found.status == "waiting"
        with pytest.raises(UnknownRun):
            await app.explain.timeline("nosuchrun")
        loaded = await app.history.definition(run.id)
        assert loaded.name == "Flow" and loaded.user_script == ()


async def test_tools_hooks_and_questions_stand_inside_what_they_belong_to(busy: Told) -> None:
    found = timeline(busy.events)
    assert [(row.depth, row.what, row.who) for row in found.rows] == [
        (0, "hook", "unlock"),
        (0, "route", "start → Planner"),
        (0, "turn 1", "Planner"),
        (1, "hook", "greet"),
        (1, "tool", "plan"),
        (2, "question", "u1"),
        (2, "question", "u1"),
        (1, "tool", "add"),
        (1, "tool", "subtract"),
        (1, "hook", "check"),
        (1, "hook", "praise"),
        (0, "route", "Planner → Writer"),
        (0, "turn 2", "Writer"),
        (1, "hook", "greet"),
        (1, "tool", "bind"),
        (1, "tool", "bind"),
        (0, "route", "Writer → Editor"),
        (0, "route", "Editor → terminate"),
        (0, "finished", "driver"),
    ]
    first, second = (row for row in found.rows if row.what.startswith("turn"))
    assert first.usage == Usage(30, 3) and tells(first.note, "3")
    assert found.usage == Usage(90, 9) == Usage(30, 3) + (second.usage or Usage())
    notes = {row.who: row.note for row in found.rows if row.what == "hook"}
    assert tells(notes["check"], "after_agent", "2", "RuntimeError: not today")
    assert tells(notes["praise"], "after_agent", "skipped", "check")
    (plan,) = (row for row in found.rows if row.who == "plan")
    asked = sum(row.seconds or 0 for row in found.rows if row.what == "question")
    assert plan.seconds is not None and plan.seconds >= asked
    assert "\n17     " in str(found)


async def test_picks_draws_and_what_servers_offer_have_rows(tell: Tell) -> None:
    told = await tell(pattern("AutoPattern"), CHATTER | {"selector": ["B", "Z"]}, ())
    picks = [row for row in timeline(told.events).rows if row.what == "pick"]
    assert tells(picks[0].note, "B", "B, C") and tells(picks[1].note, "'Z'", "A, C")
    assert picks[0].usage == Usage(10, 1) and picks[0].seconds is not None
    drawn = await tell(pattern("RandomPattern"), CHATTER, ())
    rows = timeline(drawn.events).rows
    (first, *_) = (row for row in rows if row.what == "draw")
    assert first.who == "chance" and tells(first.note, "B, C")
    last = drawn.events[-1]
    for error, note in (("", "look"), ("It is gone.", "It is gone.")):
        tools = () if error else (ToolSchema("look", "", {}),)
        fact = ToolsOffered("files", tools, error)
        event = msgspec.structs.replace(
            last, id="chat/server.files", seq=last.seq + 1, kind=fact.kind, data=fact
        )
        row = timeline([*drawn.events, event]).rows[-1]
        assert (row.what, row.who) == ("tools", "files") and tells(row.note, note)
