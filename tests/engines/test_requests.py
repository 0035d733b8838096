"""What Pydantic AI's models are asked with, and what their responses come to."""

import json
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.support.raising import raising
from tests.support.tasks import NUMBERS, task
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.agents.logic.dialogues import AGAIN, CONTINUE, WRONG, added_to, spelled
from turnloom.agents.spec import Answer, Exchange, Task, ToolCall, ToolResult, ToolSchema
from turnloom.errors import EngineError, UsageError
from turnloom.testing import LoopbackModel

WORDS = (WRONG, AGAIN)


async def shown(asked: Task) -> list[tuple[str, str]]:
    """The role and the text of each message that a provider gets."""
    async with LoopbackModel(["Yes."]) as model:
        await PydanticAIEngine("any", base_url=model.url)(asked)
    (request,) = model.requests
    return [(each["role"], each.get("content") or "") for each in request.messages]


async def test_who_said_what() -> None:
    said = (("workflow", "Begin."), ("Ann", "I do."), ("Bob", "So do I."), ("user", "Go."))
    assert await shown(task(*said)) == [
        ("system", "Be Ann."),
        ("user", "Begin."),
        ("assistant", "I do."),
        ("user", "Bob: So do I."),
        ("user", "Go."),
    ]


SPOKEN = (("user", "Hi."), ("Ann", "Hello."))


@pytest.mark.parametrize(
    "asked",
    [
        task(),
        task(*SPOKEN),
        task(*SPOKEN, exchanges=(Exchange(),)),
        task(("user", "Hi."), exchanges=(Exchange("From another engine."), Exchange())),
    ],
)
async def test_somebody_has_the_word_before_the_model(asked: Task) -> None:
    assert (await shown(asked))[-1] == ("user", CONTINUE)
    assert added_to(asked) == (CONTINUE,)


@pytest.mark.parametrize(
    ("exchanges", "added"),
    [
        ((), ()),
        ((Exchange("", (ToolCall("add"),), (ToolResult(5),)),), ()),
        ((Exchange("Six.", problem="Odd."), Exchange("Five.", problem="Even.")), 2 * WORDS),
        ((Exchange("Six.", problem="Odd."), Exchange("Another.")), (*WORDS, CONTINUE)),
    ],
)
def test_what_is_added_follows_from_the_task(
    exchanges: tuple[Exchange, ...], added: tuple[str, ...]
) -> None:
    assert added_to(task(("user", "Add."), exchanges=exchanges)) == added


async def test_calls_of_another_engine_have_ids_too() -> None:
    calls = (ToolCall("add", {"a": 1}), ToolCall("add", {"a": 2}, "own"))
    results = (ToolResult(None), ToolResult({"sum": 3}))
    exchanges = (Exchange("Let me see.", calls, results), Exchange("Six.", problem="It is odd."))
    roles = await shown(task(("user", "Add."), exchanges=exchanges))
    assert [role for role, _ in roles] == [
        *("system", "user", "assistant", "tool", "tool", "assistant", "user")
    ]
    assert [text for role, text in roles if role == "tool"] == ["null", '{"sum":3}']
    assert "It is odd." in roles[-1][1]


async def test_an_output_that_is_no_object_is_asked_for_in_one() -> None:
    given = Answer(output={"response": [1, 2]})
    async with LoopbackModel([given, "none", Answer(output=[3])]) as model:
        engine = PydanticAIEngine("any", base_url=model.url)
        answers = [await engine(task(("user", "Count."), output=NUMBERS)) for _ in range(3)]
    assert [(each.output, each.text) for each in answers][1:] == [(None, "none"), ([3], "[3]")]
    assert answers[0].output == [1, 2]
    form = model.requests[0].body["response_format"]["json_schema"]["schema"]
    assert form["properties"]["response"].pop("items") == {"type": "integer"}
    assert form["properties"]["response"].pop("type") == "array"
    assert [json.loads(each) for each in answers[0].added] == [form]


async def test_a_model_without_forms_gives_its_output_to_a_tool() -> None:
    async def give(messages: list[ModelMessage], info: AgentInfo) -> Any:
        (tool,) = info.output_tools
        yield {0: DeltaToolCall(tool.name, '{"response": [1, 2]}', tool_call_id="1")}

    model = FunctionModel(stream_function=give, profile={"supports_json_schema_output": False})
    answer = await PydanticAIEngine(model)(task(("user", "Count."), output=NUMBERS))
    assert answer.output == [1, 2]
    assert answer.calls == ()
    assert answer.model == model.model_name
    assert answer.added[1:] == ("final_result", "Takes the answer: Numbers.")


async def test_arguments_that_are_no_data_are_left_to_the_tool() -> None:
    async def call(messages: list[ModelMessage], info: AgentInfo) -> Any:
        yield {0: DeltaToolCall("add", '{"a": 1', tool_call_id="1")}

    tools = (ToolSchema("add", "", {"type": "object", "properties": {}}),)
    answer = await PydanticAIEngine(FunctionModel(stream_function=call))(task(tools=tools))
    assert answer.calls == (ToolCall("add", {"INVALID_JSON": '{"a": 1'}, "1"),)


async def test_other_providers_are_reached_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackModel([]) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url.removesuffix("/v1"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        with raising(EngineError, "404", "/v1/messages"):
            await PydanticAIEngine("anthropic:claude-sonnet-5-5")(task(("user", "Hi.")))


async def test_an_engine_without_a_model_says_so() -> None:
    with pytest.raises(UsageError):
        await PydanticAIEngine()(task())


def test_names_are_spelled_as_providers_take_them() -> None:
    names = ["add", "a b", "a_b", "a-b", "a.b", "é" * 80, "x" * 80, "x" * 90]
    plain = [*spelled(names).values()]
    assert plain[:5] == ["add", "a_b", "a_b_2", "a-b", "a_b_3"]
    assert len({*plain}) == len(names)
    assert all(0 < len(each) <= 64 and each.isascii() for each in plain)
