"""What providers send beside their protocol, asked by every library: it comes to the same."""

import json
from typing import Any

import pytest
from anyio.abc import ByteStream

from tests.support.engines import ENGINES, asking
from tests.support.loopback import listening
from tests.support.raising import raising
from tests.support.tasks import task
from turnloom.agents.spec import Answer, ToolCall, ToolSchema
from turnloom.errors import EngineError
from turnloom.testing import InvalidReply, LoopbackModel
from turnloom.testing.loopback.responses import ResponsesReply
from turnloom.testing.loopback.script import Line

ADD = ToolSchema("add", "", {"type": "object", "properties": {}})
ENDED = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}

# AutoGen puts the calls of an answer where their provider numbers them, and takes no gaps.
ORDERING = [kind for kind in ENGINES if kind != "autogen"]


def chunks(*choices: dict[str, Any] | None) -> InvalidReply:
    """An answer in chunks with these choices, or none."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "any"}
    return streamed(*(head | {"choices": [each] if each else []} for each in choices))


def streamed(*events: dict[str, Any]) -> InvalidReply:
    """An answer that comes as these events."""
    return InvalidReply("\n\ndata: ".join(map(json.dumps, events)))


def called(arguments: str, index: int = 0) -> dict[str, Any]:
    """A call of a tool, as its provider numbers it."""
    function = {"name": "add", "arguments": arguments}
    call = {"index": index, "id": f"id{index}", "type": "function", "function": function}
    return {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}


async def calls(kind: str, line: Line) -> tuple[ToolCall, ...]:
    """What an engine has called when its model answers so."""
    async with LoopbackModel([line]) as model, asking(kind, model.url) as engine:
        answer = await engine(task(("user", "Add."), tools=(ADD,)))
    (tool,) = model.requests[0].body["tools"]
    assert tool["function"].get("description", "") is not None
    return answer.calls


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("wrong", ['{"a": 1,', '{"a": NaN}', '{"a": "\\ud800"}', "[1, 2]", "5"])
async def test_arguments_that_are_no_data_are_left_to_the_tool(kind: str, wrong: str) -> None:
    (call,) = await calls(kind, chunks(called(wrong), ENDED))
    assert call == ToolCall("add", {"INVALID_JSON": wrong}, "id0")


@pytest.mark.parametrize("kind", ORDERING)
async def test_calls_may_be_numbered_with_gaps(kind: str) -> None:
    given = await calls(kind, chunks(called('{"a": 1}', 1), called('{"a": 2}', 3), ENDED))
    assert [call.arguments for call in given] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("text", ["It is", None])
async def test_an_answer_without_an_end_was_cut_off(kind: str, text: str | None) -> None:
    begun = {"index": 0, "delta": {"content": text}, "finish_reason": None} if text else None
    async with LoopbackModel([chunks(begun), "It is 5."]) as model:
        async with asking(kind, model.url) as engine:
            assert (await engine(task(("user", "Add.")))).text == "It is 5."
    model.assert_complete()


@pytest.mark.parametrize("kind", ["pydantic_ai", "ag2"])
async def test_so_was_one_of_the_newer_protocol(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = ResponsesReply(Answer("It is"), {"model": "any"}, 1).text_chunks()
    async with LoopbackModel([streamed(*begun), "It is 5."]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        engine = ENGINES[kind]("openai:any")
        assert (await engine(task(("user", "Add.")))).text == "It is 5."
    assert {request.path for request in model.requests} == {"/v1/responses"}
    model.assert_complete()


@pytest.mark.parametrize("kind", ENGINES)
async def test_an_answer_may_end_for_a_reason_of_its_provider(kind: str) -> None:
    ended = {"index": 0, "delta": {"content": "It is 5."}, "finish_reason": "eos_token"}
    async with LoopbackModel([chunks(ended)]) as model, asking(kind, model.url) as engine:
        assert (await engine(task(("user", "Add.")))).text == "It is 5."


@pytest.mark.parametrize("kind", ENGINES)
async def test_a_server_without_tls_is_asked_once(kind: str) -> None:
    greeted: list[bytes] = []

    async def refuse(stream: ByteStream) -> None:
        async with stream:
            greeted.append(await stream.receive())
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(refuse) as port, asking(kind, f"https://127.0.0.1:{port}/v1") as engine:
        with raising(EngineError, "SSL", "certificate"):
            await engine(task(("user", "Add.")))
    assert len(greeted) == 1
