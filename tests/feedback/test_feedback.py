"""What people think of runs: kept beside them, chosen by, removed with them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.schedules.flows import Report, report
from turnloom import Loom
from turnloom.errors import Forbidden, UnknownRun, UsageError
from turnloom.feedback.logic import as_filter
from turnloom.feedback.spec import MOST_COMMENT, FeedbackFilter
from turnloom.log.spec import RunKey
from turnloom.runs.principal import Principal
from turnloom.testing import FakeClock


async def finished(app: Loom, **settings: Any) -> Any:
    run = await app.start(report, Report(), **settings)
    await run.outcome()
    return run


async def test_feedback_is_given_listed_and_replaced() -> None:
    async with Loom(store="memory") as app:
        run = await finished(app)
        await run.feedback("helpful", score=1, comment="Good.")
        await run.feedback("helpful", score=0.5, user_id="ann")
        second = await run.feedback("helpful", label="no", user_id="ann")
        found = await app.feedback.list(run.id)
        assert [(each.who, each.score, each.label) for each in found] == [
            ("local", 1.0, None),
            ("ann", None, "no"),
        ]
        assert found[1] == second


async def test_what_is_refused() -> None:
    async with Loom(store="memory") as app:
        run = await finished(app)
        give: Any = run.feedback
        for wrong in (
            {},
            {"score": 1, "label": "x"},
            {"score": float("nan")},
            {"score": float("inf")},
            {"score": 10**400},
            {"score": True},
            {"score": "1"},
            {"label": "a\nb"},
            {"label": "x" * 101},
            {"label": ""},
            {"score": 1, "comment": "x" * (MOST_COMMENT + 1)},
            {"score": 1, "comment": None},
            {"score": 1, "turn": 0},
            {"score": 1, "turn": 7},
            {"score": 1, "turn": "1"},
            {"score": 1, "user_id": ""},
        ):
            with pytest.raises(UsageError):
                await give("helpful", **wrong)
        for name in ("", "a\x1b[2J", 5):
            with pytest.raises(UsageError):
                await give(name, score=1)
        with pytest.raises(UnknownRun):
            await app.feedback.give("unknown", "helpful", score=1)
        with pytest.raises(UnknownRun):
            await app.feedback.give(run.id, "helpful", score=1, app_id="globex")
        assert not await app.feedback.list(run.id)


async def test_runs_are_chosen_by_feedback() -> None:
    async with Loom(store="memory") as app:
        runs = [await finished(app) for _ in range(5)]
        for number, run in enumerate(runs[:4]):
            await run.feedback("helpful", score=number / 4)
        await runs[4].feedback("verdict", label="wrong")

        async def chosen(feedback: str, **which: Any) -> list[int]:
            found = await app.runs(feedback=feedback, **which)
            return [[each.id for each in runs].index(each.run) for each in found]

        assert await chosen("helpful") == [3, 2, 1, 0]
        assert await chosen("helpful", limit=2) == [3, 2]
        assert await chosen("helpful", before=runs[2].id) == [1, 0]
        assert await chosen("helpful>=0.5") == [3, 2]
        assert await chosen("helpful<0.5", workflow="report") == [1, 0]
        assert await chosen("verdict=wrong") == [4]
        assert await chosen("helpful", find=f"{runs[1].id} report") == [1]
        assert await chosen("helpful", find=runs[4].id) == []
        assert await chosen("verdict = right") == []
        assert await chosen("helpful", status="failed") == []
        found = await app.history.backtest(report, feedback="helpful<0.5")
        assert [each.run for each in found.runs] == [runs[1].id, runs[0].id]
        with pytest.raises(UsageError):
            await app.history.backtest(report, [runs[0].id], feedback="helpful")


@pytest.mark.parametrize("text", ["", "<1", "a<", "a<b", "a<nan", "a=", "a==b=", "a<1<2", "a\0"])
def test_filters_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        as_filter(text)


def test_filters() -> None:
    assert as_filter(" quality ") == FeedbackFilter("quality")
    assert as_filter("a b<= -1e3") == FeedbackFilter("a b", most=-1000.0)
    assert as_filter("v=très bon") == FeedbackFilter("v", label="très bon")


async def test_users_give_feedback_on_their_own_runs() -> None:
    async with Loom(store="memory") as app:
        ann = app.as_principal(Principal("acme", "ann"))
        run = await ann.start(report, Report())
        await run.feedback("helpful", score=1)
        await app.feedback.give(run.id, "helpful", score=0, user_id="bob", app_id="acme")
        assert [each.who for each in await ann.feedback.list(run.id)] == ["ann"]
        developer = app.as_principal(Principal("acme", "dev", "developer"))
        assert [each.who for each in await developer.feedback.list(run.id)] == ["ann", "bob"]
        bob = app.as_principal(Principal("acme", "bob"))
        other = app.as_principal(Principal("globex", "ann"))
        for view in (bob, other):
            with pytest.raises(UnknownRun):
                await view.feedback.list(run.id)
            with pytest.raises(UnknownRun):
                await view.feedback.give(run.id, "helpful", score=1)
        with pytest.raises(Forbidden):
            await ann.feedback.give(run.id, "helpful", score=1, user_id="bob")
        reader = app.as_principal(Principal("acme", "ann", "user", ["runs:read"]))
        with pytest.raises(Forbidden):
            await reader.feedback.give(run.id, "helpful", score=1)


@pytest.mark.parametrize("is_file", [True, False])
async def test_feedback_goes_with_its_run(tmp_path: Path, is_file: bool) -> None:
    clock = FakeClock()
    store: Any = tmp_path / "a.db" if is_file else "memory"
    async with Loom(store=store, clock=clock) as app:
        old = await finished(app)
        await old.feedback("helpful", score=1)
        clock.advance(timedelta(days=2))
        young = await finished(app)
        await young.feedback("helpful", score=1)
        assert [each.run async for each in app.history.prune("1d")] == [old.id]
        port: Any = app._open().store  # type: ignore[reportPrivateUsage]
        assert not await port.feedback.of_run(RunKey("local", old.id))
        assert len(await app.feedback.list(young.id)) == 1
