"""Questions to roles and to several people: the first valid answer counts, and says whose it is."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.asking import asking
from tests.flow.scenes import Work, note
from tests.support.folders import write_folder
from turnloom import Flow, Loom, LoomView, Principal, Run, UnknownRun
from turnloom.errors import DefinitionError, NotYours, UsageError

Approvers = str | list[str]


def flow(approver: Any) -> Flow[Work]:
    built = Flow("work", Work).start_with(note("draft"))
    return built.await_approval(approver).finally_(note("end"))


def views(app: Loom) -> dict[str, LoomView]:
    who = {"ann": "user", "dev": "developer", "root": "admin", "bob": "user"}
    found: dict[str, Any] = who
    return {name: app.as_principal(Principal("acme", name, role)) for name, role in found.items()}


async def answered_by(app: Loom, run: Run[Any]) -> list[str]:
    events = await app.history.events(run.id, app_id="acme")
    return [each.data.by for each in events if each.kind == "question.answered"]


@pytest.mark.parametrize(
    ("approver", "asked"),
    [
        ("role:admin", {"root"}),
        ("role:developer", {"dev", "root"}),
        ("role:user", {"ann", "bob", "dev", "root"}),
        (["ann", "role:admin"], {"ann", "root"}),
        (["ann", "bob", "ann"], {"ann", "bob"}),
        ("dev", {"dev"}),
    ],
)
async def test_those_who_are_asked_may_answer(approver: Approvers, asked: set[str]) -> None:
    async with Loom(store="memory") as app:
        people = views(app)
        run = await app.start(flow(approver), Work(), user_id="zoe", app_id="acme")
        await run.outcome()
        found = {name for name, view in people.items() if await view.questions()}
        assert found == asked
        for name in people.keys() - asked:
            with pytest.raises(UnknownRun if name in ("ann", "bob") else NotYours):
                await people[name].handle(run.id).answer(None, "approve")
        first, *others = sorted(asked)
        (open_question,) = await people[first].questions()
        question = open_question.question.id
        assert await people[first].handle(run.id).answered_by(question) == ""
        assert await people[first].handle(run.id).answer(None, "approve")
        for name, view in people.items():
            if name in asked:
                assert await view.handle(run.id).answered_by(question) == first
                continue
            with pytest.raises(UnknownRun if name in ("ann", "bob") else NotYours):
                await view.handle(run.id).answered_by(question)
        with pytest.raises(UnknownRun):
            await people["root"].handle("none").answered_by(question)
        assert (await run.outcome()).state.notes == ["draft", "end"]
        assert await answered_by(app, run) == [first]
        for name in others:
            with pytest.raises(UsageError):
                await people[name].handle(run.id).answer(None, "reject")
        replayed = await app.history.replay(run.id, app_id="acme")
        assert replayed.divergence is None
        assert first in str(await app.explain.timeline(run.id, app_id="acme"))


@pytest.mark.parametrize("approver", ["", [], "role:boss", ["ann", ""], 5, [5], "role:"])
async def test_what_nobody_could_answer_is_refused(approver: Any) -> None:
    async with Loom(store="memory") as app:
        with pytest.raises(DefinitionError) as refused:
            await app.start(flow(approver), Work())
        assert {each.code for each in refused.value.diagnostics} == {"W126"}


TOOL = """
from turnloom import use_ui_tool


async def ask():
    return await use_ui_tool("ask", {"title": "May I?"}, to=TO)
"""


async def test_a_tool_asks_others(tmp_path: Path) -> None:
    files = asking() | {"asks.py": TOOL.replace("TO", '["bob", "role:admin"]')}
    async with Loom(store="memory") as app:
        people = views(app)
        folder = write_folder(tmp_path, files, "Asks")
        run = await app.start(folder, user_id="ann", app_id="acme")
        async for event in run.events():
            if event.kind == "run.paused":
                break
        assert await people["ann"].handle(run.id).questions() == []
        (asked,) = await people["root"].handle(run.id).questions()
        assert (asked.to, asked.among) == ("bob or role:admin", ("bob", "role:admin"))
        assert await people["root"].handle(run.id).answer(asked.id, "yes")
        assert await answered_by(app, run) == ["root"]


async def test_a_tool_that_asks_an_unknown_role_fails(tmp_path: Path) -> None:
    files = asking() | {"asks.py": TOOL.replace("TO", '"role:boss"')}
    async with Loom(store="memory") as app:
        run = await app.start(write_folder(tmp_path, files, "Asks"))
        events = [event async for event in run.events()]
        assert [each.data.error for each in events if each.kind == "tool.failed"] == ["UsageError"]


async def test_a_user_is_no_role() -> None:
    async with Loom(store="memory") as app:
        with pytest.raises(UsageError):
            await app.start(flow("ann"), Work(), user_id="role:admin")
        with pytest.raises(UsageError):
            app.board("shop", user_id="role:admin")
