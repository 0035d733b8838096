"""A run at a glance, and the one door to all explanations."""

import msgspec
import pytest

from tests.explain.conftest import FLOW, Engine, Tell, Told
from tests.support.folders import write_folder
from weft import Weft
from weft.errors import UnknownRun, UsageError
from weft.explain.logic.timeline import timeline


async def test_there_is_a_row_for_each_turn_question_route_and_the_end(told: Told) -> None:
    found = timeline(told.events)
    assert (found.status, found.turns, found.events) == ("finished", 5, len(told.events))
    assert (found.user, found.tenant, found.workflow) == ("u1", "acme", "Flow")
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
    assert "u1 answered 'one'" in str(found) and "\x1b" not in str(found)
    assert msgspec.to_builtins(found)["rows"][0]["what"] == "route"


async def test_runs_that_wait_or_failed_say_so(tell: Tell) -> None:
    waiting = timeline((await tell(answers=())).events)
    assert waiting.status == "waiting" and waiting.rows[-1].seconds is None
    failed = timeline((await tell(said={"Asker": []}, answers=())).events)
    assert failed.status == "failed" and "nothing left to say" in str(failed)
    with pytest.raises(UsageError):
        timeline([])


async def test_the_app_explains(told: Told, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with Weft(store="memory", engine=Engine()) as app:
        run = await app.start(write_folder(tmp_path_factory.mktemp("flow"), FLOW))
        async for event in run.events():
            if event.kind == "run.paused":
                break
        assert "Turn 1 of Asker" in str(await app.explain(run.id, turn=1))
        assert "Turn 1 of Asker" in str(await app.explain(run.id, turn=1, agent="Asker"))
        assert "tier is" in str(await app.explain(run.id, variable="tier", at=3))
        assert "start → Asker" in str(await app.explain(run.id, route=1))
        assert "waiting" in str(await app.explain(run.id))
        for wrong in ({"turn": 1, "route": 1}, {"agent": "Asker"}, {"at": 3}):
            with pytest.raises(UsageError):
                await app.explain(run.id, **wrong)
        with pytest.raises(UnknownRun):
            await app.explain("nosuchrun")
        loaded = await app.definition(run.id)
        assert loaded.workflow.name == "Flow" and loaded.user_script == ()
