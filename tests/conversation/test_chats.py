"""Code for chats of AG2's classic line: what goes wrong there is told, and none of it is run."""

import re
from pathlib import Path

import pytest

from tests.conversation.mistakes import named
from tests.flow.mistakes import Mistake, mistakes
from tests.support.checks import examined
from tests.support.folders import write_folder
from tests.support.plays import solo
from turnloom.conversation.logic import chats
from turnloom.errors import Diagnostic
from turnloom.wiring import ModelEngines, examine_code

PRELUDE = """\
import asyncio

import autogen
from autogen import AssistantAgent, ConversableAgent, GroupChat, GroupChatManager, UserProxyAgent
from autogen import register_function
from autogen.agentchat import a_initiate_group_chat, initiate_group_chat, run_group_chat
from autogen.agentchat import run_group_chat_iter as start
from autogen.agentchat.group import AgentTarget, ContextVariables, FunctionTarget, ReplyResult
from autogen.agentchat.group.patterns import DefaultPattern
from autogen.tools import tool

raise SystemExit("nobody runs this")
"""
MISTAKES = mistakes(Path(__file__).with_name("chats.txt"), PRELUDE)


def told_of(folder: Path, text: str) -> list[Diagnostic]:
    """What is said about a program."""
    file = folder / "program.py"
    file.write_text(text, "utf-8")
    return examine_code(str(file), ModelEngines("openai:gpt-5"))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each.code} {each.says}"[:60])
def test_a_mistake_is_told_at_its_line_and_nothing_else_is(
    mistake: Mistake, tmp_path: Path
) -> None:
    found = told_of(tmp_path, mistake.text)
    if mistake.code == "nothing":
        assert found == []
    else:
        (problem,) = found
        assert (problem.code, problem.line) == (mistake.code, mistake.line)
        assert problem.file == str(tmp_path / "program.py")
        assert problem.severity == "warning"
        told = f"{problem.message} {problem.remedy}"
        assert all(value in told for value in named(mistake.says)), told


def test_every_code_that_the_check_can_give_has_a_case() -> None:
    texts = [Path(chats.__file__).read_text("utf-8")]
    given = {code for text in texts for code in re.findall(r'"(W\d\d\d)"', text)}
    assert {mistake.code for mistake in MISTAKES} - {"nothing"} == given


WITH_A_FLOW = """\
from pydantic import BaseModel, ConfigDict
from autogen import ConversableAgent
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group.patterns import RoundRobinPattern
from turnloom import Flow

class State(BaseModel):
    model_config = ConfigDict(frozen=True)

desk = ConversableAgent("Desk")

def serve(text):
    initiate_group_chat(RoundRobinPattern(initial_agent=desk, agents=[desk]), text)

flow = Flow("flow", State).start_with(lambda state, ctx: None)
"""


def test_flows_beside_chats_are_checked_too(tmp_path: Path) -> None:
    told = [(each.code, each.line) for each in told_of(tmp_path, WITH_A_FLOW)]
    assert told == [("W072", 13), ("W105", 15)]


@pytest.mark.parametrize("text", ["import autogen\nx = (", "import autogen\n\0"])
def test_what_is_no_code_is_told_as_ever(text: str, tmp_path: Path) -> None:
    assert [each.code for each in told_of(tmp_path, text)] == ["W042"]


# ------------------------------------------------------------------ tools of a folder

HEAD = "from autogen.agentchat.group import ContextVariables, ReplyResult\n"
IN_PLACE = """
def save(plan: str, context_variables: ContextVariables) -> str:
    context_variables["plan"] = plan
    return "saved"
"""
GIVEN = """
def save(plan: str, context_variables: ContextVariables) -> ReplyResult:
    known = {"plan": plan}
    return ReplyResult(message="saved", context_variables=ContextVariables(data=known))
"""


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        (HEAD + IN_PLACE, 4, "'save'"),
        (HEAD + GIVEN, 5, "`context_variables[name] ="),
    ],
)
def test_a_tool_that_is_right_in_one_world_only_is_told(
    code: str, line: int, says: str, tmp_path: Path
) -> None:
    is_right, (problem,) = examined(write_folder(tmp_path, solo(code, "save")))
    assert is_right
    assert (problem.file, problem.line, problem.code) == ("Flow/code.py", line, "W071")
    assert says in f"{problem.message} {problem.remedy}"
    assert problem.severity == "warning"


BOTH_WAYS = GIVEN.replace("known =", "context_variables['plan'] = plan; known =")


@pytest.mark.parametrize(
    "code", [IN_PLACE.replace("ContextVariables", "'autogen'"), HEAD + BOTH_WAYS]
)
def test_a_tool_that_knows_nothing_of_ag2_or_both_worlds_is_right(
    code: str, tmp_path: Path
) -> None:
    is_right, problems = examined(write_folder(tmp_path, solo(code, "save")))
    assert is_right and problems == []
