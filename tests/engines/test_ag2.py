"""Models through AG2, by the suite that every engine passes."""

from typing import Any

import pytest
from ag2.config import OpenAIConfig

from tests.support.engines import ByAddress, ByName
from tests.support.raising import raising
from tests.support.tasks import NUMBERS, task
from turnloom.adapters.ag2 import AG2Engine
from turnloom.agents.spec import (
    Answer,
    Exchange,
    Task,
    ToolCall,
    ToolResult,
)
from turnloom.errors import UsageError
from turnloom.testing import LoopbackModel


class TestAG2(ByAddress):
    kind = AG2Engine


class TestAG2ByName(ByName):
    kind = AG2Engine


async def shown(asked: Task) -> list[dict[str, Any]]:
    """The messages that a provider gets."""
    async with LoopbackModel(["Yes."]) as model:
        await AG2Engine("any", base_url=model.url)(asked)
    (request,) = model.requests
    return request.messages


async def test_who_said_what() -> None:
    said = (("workflow", "Begin."), ("Ann", "I do."), ("Bob", "So do I."), ("user", "Go."))
    assert [(each["role"], _text(each)) for each in await shown(task(*said))] == [
        ("system", "Be Ann."),
        ("user", "Begin."),
        ("assistant", "I do."),
        ("user", "Bob: So do I.|Go."),
    ]


async def test_calls_and_what_they_gave() -> None:
    calls = (ToolCall("add", {"a": 1}), ToolCall("add", {"a": 2}, "own"))
    exchange = Exchange("Let me see.", calls, (ToolResult(None), ToolResult({"sum": 3})))
    messages = await shown(task(("user", "Add."), exchanges=(exchange,)))
    assert [each["role"] for each in messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [each["id"] for each in messages[2]["tool_calls"]] == ["call_0_0", "own"]
    assert [_text(each) for each in messages[3:]] == ["null", '{"sum":3}']


async def test_an_output_that_is_no_object_is_asked_for_in_one() -> None:
    async with LoopbackModel([Answer(output={"response": [1, 2]}), "none"]) as model:
        engine = AG2Engine("any", base_url=model.url)
        answers = [await engine(task(("user", "Count."), output=NUMBERS)) for _ in range(2)]
    assert [each.output for each in answers] == [[1, 2], None]


async def test_a_configuration_of_ag2_is_asked_as_it_is() -> None:
    async with LoopbackModel(["Yes."]) as model:
        config = OpenAIConfig("any", api_key="key", base_url=model.url, temperature=0.5)
        answer = await AG2Engine(config)(task(("user", "Really?")))
    assert answer.text == "Yes."
    assert model.requests[0].body["temperature"] == 0.5
    assert not model.requests[0].body["stream"]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("opnai:gpt-5", "anthropic"),
        ("gpt-5", "anthropic"),
        ("openai:gpt-5", "Set OPENAI_API_KEY."),
        ("mistral:mistral-large-latest", "ag2[mistral]"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused(
    model: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with raising(UsageError, says):
        AG2Engine(model)


async def test_an_engine_without_a_model_says_so() -> None:
    with pytest.raises(UsageError):
        await AG2Engine()(task())


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "|".join(part["text"] for part in content)
