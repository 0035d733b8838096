"""What goes wrong in group chats of AG2's classic line goes right where its clients answer."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from autogen import ConversableAgent, LLMConfig
from autogen.agentchat import a_initiate_group_chat
from autogen.agentchat.group import ContextVariables, ReplyResult, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern

from tests.support.folders import write_folder
from tests.support.lines import WITH_PEOPLE, BothLines, call, modelled, rule
from tests.support.plays import solo
from turnloom import Loom
from turnloom.adapters.autogen import AutogenEngine
from turnloom.testing import LoopbackModel


class TestClassic(BothLines):
    engine = "autogen"

    async def test_no_word_of_an_agent_ends_the_run(self, tmp_path: Path) -> None:
        """`TERMINATE` is a word like any other: its trigger is heard, and the rules decide."""
        ended = {"type": "agent_text", "agent": "A", "match": {"equals": "TERMINATE"}}
        source = {"type": "derived", "default": False, "triggers": [ended]}
        folder = self.folder(
            tmp_path,
            context_variables={"definitions": {"over": {"type": "boolean", "source": source}}},
            handoffs=[rule("A", "B", "over is true"), rule("A", "terminate")],
        )
        async with modelled(["TERMINATE", "Not yet."]):
            done = await self.converse(folder)
        assert done.texts == ["TERMINATE", "Not yet."]

    @pytest.mark.parametrize("word", ["exit", ""])
    async def test_no_word_of_a_person_is_a_command(self, word: str, tmp_path: Path) -> None:
        folder = self.folder(
            tmp_path,
            orchestrator=WITH_PEOPLE,
            handoffs=[rule("A", "user"), rule("user", "B"), rule("B", "terminate")],
        )
        async with modelled(["What now?", "I heard."]) as model:
            done = await self.converse(folder, word)
        assert done.texts == ["What now?", "I heard."]
        assert [each.text for each in done.facts("user.text")] == ["Begin.", word]
        assert done.end.data.reason != word and len(model.requests) == 2

    async def test_the_first_variable_may_come_from_a_tool(self, tmp_path: Path) -> None:
        """A run that has no variables yet has the same context for everybody."""
        code = """
            def put(context_variables):
                context_variables["first"] = 1
                return len(context_variables) and bool(context_variables)
            def get(context_variables): return context_variables["first"]
            """
        folder = self.folder(tmp_path, code, "put get", handoffs=[rule("A", "terminate")])
        async with modelled([call("put"), call("get"), "Done."]):
            done = await self.converse(folder)
        assert [each.result for each in done.facts("tool.returned")] == [True, 1]

    async def test_a_client_stays_whatever_tools_are_offered(self, tmp_path: Path) -> None:
        """Tools and handoffs that a model chooses change what is offered, and not who is asked."""
        code = "def look(): return 'seen'"
        offered = rule("A", "B", "When it was seen.", condition_type="string_llm")
        files = solo(code, "look", agents={"A": {}, "B": {}}, handoffs=[offered])
        async with modelled([call("look"), call("transfer_to_B_1"), "Mine."]) as model:
            entry = {"api_type": "openai", "model": "own", "api_key": "key", "temperature": 0.5}
            engine = AutogenEngine(LLMConfig(entry | {"base_url": model.url}))
            async with Loom(store="memory", engine=engine) as app:
                await (await app.start(write_folder(tmp_path, files))).finished()
        assert [sorted(each.tools) for each in model.requests] == [
            ["look", "transfer_to_B_1"],
            ["look", "transfer_to_B_1"],
            [],
        ]
        assert {(each.body["model"], each.body["temperature"]) for each in model.requests} == {
            ("own", 0.5)
        }


# ------------------------------------------------------------------ what the check tells of is so


FREE = {"price": [0, 0]}


def keep(context_variables: ContextVariables) -> str:
    """Set whose it is."""
    context_variables["tenant"] = "set"
    return "kept"


def give(context_variables: ContextVariables) -> ReplyResult:
    """Say whose it is."""
    return ReplyResult(message="given", context_variables=context_variables)


@pytest.mark.parametrize(("tool", "whose"), [(keep, ["acme", "globex"]), (give, ["acme", "acme"])])
async def test_a_chat_does_what_the_check_tells_of(tool: Any, whose: list[str]) -> None:
    """`W071`: what a tool sets in place is lost. `W072`: agents that are used again bring the
    variables of the first run into the second."""
    found = []
    async with LoopbackModel([call(tool.__name__), "Done."] * 2) as model:
        entry = {"api_type": "openai", "model": "any", "api_key": "key", "base_url": model.url}
        agent = ConversableAgent("A", functions=[tool], llm_config=LLMConfig(entry | FREE))
        for tenant in ("acme", "globex"):
            begun = ContextVariables(data={"tenant": tenant})
            pattern = DefaultPattern(
                agent, [agent], context_variables=begun, group_after_work=TerminateTarget()
            )
            with redirect_stdout(io.StringIO()):
                _, context, _ = await a_initiate_group_chat(pattern, "Begin.", 4)
            found.append(context["tenant"])
    assert found == whose
