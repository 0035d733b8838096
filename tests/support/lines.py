"""Runs whose agents answer by one of the two lines of AG2, and the traps that both lines have."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import msgspec
import pytest

from tests.support.folders import write_folder
from turnloom import Answer, Loom
from turnloom.agents.spec import ToolCall
from turnloom.app.run import Run
from turnloom.errors import DefinitionError
from turnloom.testing import LoopbackModel
from turnloom.testing.contracts.engines.stage import FinishedRun
from turnloom.testing.contracts.facts import PATIENCE
from turnloom.testing.loopback.script import Lines

CONTEXT = {
    "definitions": {
        "done": {
            "type": "boolean",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "agent_text", "agent": "A", "match": {"contains": "NEXT"}}],
            },
        },
        "spoke": {
            "type": "boolean",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "agent_turn_count", "agent": "A", "count": 2}],
            },
        },
        "plan": {"type": "string", "source": {"type": "derived"}},
    },
    "agents": {"B": {"variables": ["plan", "done", "spoke"]}},
}
WITH_PEOPLE = {"initial_message": "Begin.", "human_in_the_loop": True}


def rule(source: str, target: str, condition: str = "", **more: Any) -> dict[str, Any]:
    """A handoff: after work, or by a condition."""
    how = {"handoff_type": "condition" if condition else "after_work"}
    said = {"condition": condition} if condition else {}
    return {"source_agent": source, "target_agent": target} | how | said | more


def call(tool: str, **arguments: Any) -> Answer:
    """An answer that calls a tool."""
    return Answer(calls=(ToolCall(tool, arguments),))


def system(request: Any) -> str:
    """The instructions that a model was given."""
    (said,) = (each["content"] for each in request.messages if each["role"] == "system")
    return said


@asynccontextmanager
async def modelled(lines: Lines) -> AsyncIterator[LoopbackModel]:
    """A model on loopback, where `openai-chat:any` is looked for."""
    async with LoopbackModel(lines) as model:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", model.url)
            patch.setenv("OPENAI_API_KEY", "key")
            yield model


class Line:
    """Runs by one line of AG2: agents `A`, `B` and `C` name its engine."""

    engine: ClassVar[str]

    def folder(self, where: Path, code: str = "", tools: str = "", **parts: Any) -> str:
        """A workflow folder; `A` has the tools, from the code."""
        agent = {"engine": self.engine, "model": "openai-chat:any"}
        bound = [{"agent": "A", "file": "code.py", "function": each} for each in tools.split()]
        files = {
            "orchestrator": {"initial_message": "Begin."},
            "agents": {name: {"system_message": f"Be {name}.", **agent} for name in "ABC"},
            "tools": {"tools": bound},
            **parts,
        }
        written = {f"{part}.json": json.dumps(said) for part, said in files.items()}
        return write_folder(where, written | ({"code.py": code} if code else {}))

    async def converse(self, folder: str, *answers: Any, **ids: str) -> FinishedRun:
        """A run to its end, in which a person gives these answers."""
        async with Loom(store="memory") as app:
            run = await app.start(folder, **ids)
            await answered(run, *answers)
            return FinishedRun([*await app.history.events(run.id, app_id=run.app_id)], [])


async def answered(run: Run, *answers: Any) -> None:
    """Follow a run to its end and answer what it asks."""
    left = iter(answers)
    with anyio.fail_after(PATIENCE):
        async for event in run.events():
            if event.kind == "question.asked":
                await run.answer(event.data.question, next(left))


TOOLS = """
def save(plan: str, context_variables):
    context_variables.set("plan", plan)
    return "saved"

def read(context_variables):
    return context_variables["plan"]

def whose(context_variables):
    context_variables["kept"] = [*context_variables.get("kept", []), context_variables["app_id"]]
    return context_variables["kept"]
"""


class BothLines(Line):
    """What goes wrong in chats of both lines goes right here."""

    async def test_what_is_said_counts_before_anything_is_decided(self, tmp_path: Path) -> None:
        """The message that sets a flag is heard by the rules of its agent and by those of the next,
        before that one says a word."""
        folder = self.folder(
            tmp_path,
            context_variables=CONTEXT,
            handoffs=[
                rule("A", "B", "done is true"),
                rule("A", "terminate"),
                rule("B", "C", "done is true", condition_scope="pre"),
            ],
        )
        async with modelled(["Go on: NEXT.", "In time."]) as model:
            done = await self.converse(folder)
        assert [each.agent for each in done.facts("turn.started")] == ["A", "C"]
        assert "Be C." in system(model.requests[1])

    async def test_who_is_led_past_says_nothing(self, tmp_path: Path) -> None:
        """A rule before a reply leaves no message in anybody's history."""
        before = rule("A", "B", "done is false", condition_scope="pre")
        folder = self.folder(tmp_path, context_variables=CONTEXT, handoffs=[before])
        async with modelled(["Here."]) as model:
            done = await self.converse(folder)
        assert done.texts == ["Here."]
        (request,) = model.requests
        assert [each["role"] for each in request.messages] == ["system", "user"]
        assert "Begin." in request.text and "A" not in request.text.replace("Be B.", "")

    async def test_a_tool_writes_the_variables_themselves(self, tmp_path: Path) -> None:
        """What it sets is there for the turn's next tool, for rules, and for who comes next."""
        folder = self.folder(
            tmp_path,
            TOOLS,
            "save read",
            context_variables=CONTEXT,
            handoffs=[rule("A", "B", 'plan is "copy"'), rule("A", "terminate")],
        )
        async with modelled([call("save", plan="copy"), call("read"), "Saved.", "Fine."]) as model:
            done = await self.converse(folder)
        assert [each.result for each in done.facts("tool.returned")] == ["saved", "copy"]
        (changed,) = done.facts("context.changed")
        assert (changed.name, changed.value, changed.writer) == ("plan", "copy", "tool:save")
        assert '- plan: "copy"' in system(model.requests[-1])

    async def test_runs_one_after_the_other_share_nothing(self, tmp_path: Path) -> None:
        """The tools of a second run have the variables of the second run."""
        folder = self.folder(tmp_path, TOOLS, "whose", handoffs=[rule("A", "terminate")])
        kept = []
        for tenant in ("acme", "globex"):
            async with modelled([call("whose"), "Done."]) as model:
                done = await self.converse(folder, app_id=tenant)
            kept += [each.result for each in done.facts("tool.returned")]
            assert len(model.requests[0].messages) == 2
        assert kept == [["acme"], ["globex"]]

    async def test_a_run_that_stopped_goes_on_where_it_stood(self, tmp_path: Path) -> None:
        """Who is next, the variables and the triggers that fired are what they were; nothing that
        was said is heard twice."""
        folder = self.folder(
            tmp_path,
            orchestrator=WITH_PEOPLE,
            context_variables=CONTEXT,
            handoffs=[
                rule("A", "user"),
                rule("user", "B", "done is true"),
                rule("user", "A"),
                rule("B", "terminate"),
            ],
        )
        store = str(tmp_path / "turnloom.db")
        async with modelled(["Who? NEXT.", "Made for Ann."]) as model:
            async with Loom(store=store) as app:
                run = await app.start(folder)
                with anyio.fail_after(PATIENCE):
                    await anext(each async for each in run.events() if each.kind == "run.paused")
            async with Loom(store=store) as app:
                run = await app.resume(run.id, app_id=run.app_id)
                await answered(run, "Ann.")
                done = FinishedRun([*await app.history.events(run.id, app_id=run.app_id)], [])
        assert [each.agent for each in done.facts("turn.started")] == ["A", "B"]
        assert [each.name for each in done.facts("context.changed")] == ["done"]
        assert done.texts == ["Who? NEXT.", "Made for Ann."]
        assert len(model.requests) == 2
        assert "- done: true\n- spoke: false" in system(model.requests[1])

    async def test_a_template_is_filled_and_nothing_more(self, tmp_path: Path) -> None:
        """Braces that hold no name stay; nothing is looked up in a value; null has a label; a name
        that nobody declares is refused before anything begins."""
        template = 'Plan: {plan}. {done.__class__} {} {"json": {done}}'
        async with modelled(["Fine."]) as model:
            await self.converse(self._showing(tmp_path, template))
            with pytest.raises(DefinitionError) as refused:
                await self.converse(self._showing(tmp_path, "{unknown}"))
        (problem,) = [each for each in refused.value.diagnostics if each.severity == "error"]
        assert problem.code == "W021" and "'unknown'" in problem.message
        (request,) = model.requests
        assert system(request).endswith('Plan: none yet. {done.__class__} {} {"json": false}')

    def _showing(self, where: Path, template: str) -> str:
        shown = {"A": {"template": template, "null_label": "none yet"}}
        return self.folder(where, context_variables=CONTEXT | {"agents": shown})

    async def test_every_event_has_its_place_and_can_be_stored(self, tmp_path: Path) -> None:
        """A number, a time, a run and a cause that came before; every turn is told of, also after
        a person spoke."""
        folder = self.folder(
            tmp_path,
            TOOLS,
            "save",
            orchestrator=WITH_PEOPLE,
            handoffs=[rule("A", "user"), rule("user", "B"), rule("B", "terminate")],
        )
        async with modelled([call("save", plan="copy"), "And?", "So be it."]):
            done = await self.converse(folder, "Go on.")
        assert [each.seq for each in done.events] == [*range(1, len(done.events) + 1)]
        assert len({each.run for each in done.events}) == 1
        assert all(each.at.tzinfo for each in done.events)
        assert all(each.cause is None or each.cause < each.seq for each in done.events)
        assert [each.agent for each in done.facts("turn.started")] == ["A", "B"]
        told = ("model.called", "model.answered", "tool.called", "tool.returned")
        order = [kind for kind in done.kinds if kind in told]
        assert order == [*told, "model.called", "model.answered"] + [*told[:2]]
        assert msgspec.json.encode(done.events)
