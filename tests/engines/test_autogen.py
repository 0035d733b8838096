"""Models through the classic line of AG2, by the suite that every engine passes."""

from concurrent.futures import CancelledError
from contextlib import aclosing
from typing import Any

import anyio
import httpx2
import pytest
from anyio import to_thread
from autogen import LLMConfig

from tests.support.engines import ByAddress, ByName
from tests.support.raising import raising
from tests.support.tasks import NUMBERS, task
from turnloom.adapters.autogen import AutogenEngine
from turnloom.adapters.autogen.asking import CallTransport, DeltaStream
from turnloom.adapters.autogen.clients import Clients
from turnloom.agents.spec import Answer, Exchange, ToolCall, ToolResult, ToolSchema
from turnloom.errors import EngineError, UsageError
from turnloom.testing import HttpRefusal, LoopbackModel, ModelRequest, StalledReply
from turnloom.testing.contracts.facts import until


class TestAutogen(ByAddress):
    kind = AutogenEngine


class TestAutogenByName(ByName):
    kind = AutogenEngine


async def test_who_said_what_and_called_what() -> None:
    said = (("workflow", "Begin."), ("Ann", "I do."), ("Bob", "So do I."), ("user", "Add."))
    calls = (ToolCall("add", {"a": 1}), ToolCall("add", {"a": 2}, "own"))
    exchange = Exchange("", calls, (ToolResult(None), ToolResult({"sum": 3})))
    async with LoopbackModel(["Yes."]) as model:
        engine = AutogenEngine("any", base_url=model.url)
        await engine(task(*said, exchanges=(exchange,)))
    (request,) = model.requests
    assert [(each["role"], each["content"]) for each in request.messages] == [
        ("system", "Be Ann."),
        ("user", "Begin."),
        ("assistant", "I do."),
        ("user", "Bob: So do I."),
        ("user", "Add."),
        ("assistant", None),
        ("tool", "null"),
        ("tool", '{"sum":3}'),
    ]
    assert [each["id"] for each in request.messages[5]["tool_calls"]] == ["call_0_0", "own"]


@pytest.mark.parametrize("form", [dict, LLMConfig])
async def test_a_configuration_is_asked_as_it_is_but_without_its_cache(form: Any) -> None:
    entry = {"model": "any", "api_key": "key", "temperature": 0.5, "cache_seed": 41}
    async with LoopbackModel(["One.", "Two."]) as model:
        entry = {"api_type": "openai", **entry, "base_url": model.url}
        engine = AutogenEngine(entry if form is dict else LLMConfig(entry))
        answers = [await engine(task(("user", "Count."))) for _ in range(2)]
    assert [answer.text for answer in answers] == ["One.", "Two."]
    assert model.requests[0].body["temperature"] == 0.5


async def test_the_next_entry_is_asked_when_one_fails() -> None:
    async with LoopbackModel([HttpRefusal(401), "Here."]) as model:
        entries = [
            {"api_type": "openai", "model": name, "api_key": "key", "base_url": model.url}
            for name in ("first", "second")
        ]
        answer = await AutogenEngine(LLMConfig(*entries))(task(("user", "Who?")))
    assert answer.text == "Here."
    assert [request.body["model"] for request in model.requests] == ["first", "second"]


async def test_what_a_call_leaves_behind_is_nothing_of_the_next() -> None:
    """Calls have a client in turn; their tools, their forms and their failures are their own."""
    tool = ToolSchema("add", "Add.", {"type": "object", "properties": {}})
    called, given = Answer(calls=(ToolCall("add"),)), Answer(output=[3])
    lines = [HttpRefusal(401), "One.", called, "Two.", given, "Three."]
    async with LoopbackModel(lines) as model:
        engine = AutogenEngine("any", base_url=model.url)
        with raising(EngineError, "401"):
            await engine(task(("user", "Who?")))
        asked = [task(), task(tools=(tool,)), task(), task(output=NUMBERS), task()]
        answers = [await engine(each) for each in asked]
    assert [answer.text for answer in answers if answer.output is None] == [
        "One.",
        "",
        "Two.",
        "Three.",
    ]
    assert [call.tool for answer in answers for call in answer.calls] == ["add"]
    shown = [(bool(r.tools), "response_format" in r.body) for r in model.requests[1:]]
    assert shown == [(False, False), (True, False), (False, False), (False, True), (False, False)]


async def test_a_call_has_no_cookies_of_another() -> None:
    message = {"role": "assistant", "content": "Yes."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
    brought: list[str | None] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        brought.append(request.headers.get("cookie"))
        return httpx2.Response(200, headers={"set-cookie": "tenant=one"}, json=answer)

    config = {"api_type": "openai", "model": "any", "api_key": "key", "base_url": "http://any"}
    clients = Clients([config])
    for _ in range(2):
        transport, deltas = (
            CallTransport(httpx2.MockTransport(handle)),
            DeltaStream(lambda words: None),
        )
        request = {"messages": [{"role": "user", "content": "Who?"}], "price": [0.0, 0.0]}
        asked = await to_thread.run_sync(clients.ask, request, transport, deltas)
        assert asked.message == "Yes."
        await transport.end()
    assert brought == [None, None]


async def test_nothing_is_sent_for_a_call_that_is_over() -> None:
    sent: list[httpx2.Request] = []
    way = CallTransport(httpx2.MockTransport(sent.append))
    await way.end()
    with pytest.raises(CancelledError):
        await to_thread.run_sync(way.fetch, httpx2.Request("GET", "http://any"))
    assert not sent


async def test_when_a_call_is_given_up_the_next_entry_is_not_asked() -> None:
    async def answer(request: ModelRequest) -> str:
        if len(model.requests) == 1:
            await anyio.sleep_forever()
        return "Here."

    async with LoopbackModel(answer) as model:
        entries = [
            {"api_type": "openai", "model": name, "api_key": "key", "base_url": model.url}
            for name in ("first", "second")
        ]
        engine = AutogenEngine(LLMConfig(*entries))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine, task())
            await until(lambda: len(model.requests) == 1)
            tasks.cancel_scope.cancel()
        assert (await engine(task())).text == "Here."
    assert [request.body["model"] for request in model.requests] == ["first", "first"]


@pytest.mark.parametrize("keep_open", [True, False])
async def test_a_call_that_is_given_up_leaves_its_client_to_the_next(keep_open: bool) -> None:
    heard: list[str] = []
    async with LoopbackModel([StalledReply("Wait, wait."), "Here."]) as model:
        made = AutogenEngine("any", base_url=model.url, keep_open=keep_open)
        async with aclosing(made) as engine:
            with anyio.CancelScope() as scope:

                def hear(words: str | None) -> None:
                    heard.append(words or "")
                    if "".join(heard) == "Wait, wait.":
                        scope.cancel()

                await engine(task(say=hear))
            assert scope.cancelled_caught
            await until(lambda: model.abandoned == 1)
            assert (await engine(task(say=heard.append))).text == "Here."
    assert "".join(filter(None, heard)) == "Wait, wait.Here."


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("opnai:gpt-5", "anthropic"),
        ("gpt-5", "anthropic"),
        ("openai:gpt-5", "Set OPENAI_API_KEY."),
        ("mistral:mistral-large-latest", "mistral"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused(
    model: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with raising(UsageError, repr(model), says):
        AutogenEngine(model)


async def test_an_engine_without_a_model_says_so() -> None:
    with pytest.raises(UsageError):
        await AutogenEngine()(task())
