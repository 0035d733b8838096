"""A model on loopback, asked by the client that most libraries ask by."""

import asyncio

import openai
import pytest

from tests.support.raising import raising
from turnloom import Answer, ToolCall, Usage
from turnloom.errors import EngineError
from turnloom.testing import (
    BrokenReply,
    HttpRefusal,
    InvalidReply,
    LoopbackModel,
    ModelRequest,
    SlowReply,
    StalledReply,
)
from turnloom.testing.contracts.facts import until

HELLO = [{"role": "user", "content": "Hello."}]
CALLING = Answer(
    "Let me see.",
    Usage(3, 4),
    (ToolCall("add", {"a": 1, "b": [2, "three"]}), ToolCall("rest", id="own")),
)


def client(model: LoopbackModel, patience: float = 60) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=model.url, api_key="key", timeout=patience, max_retries=0)


async def ask(
    model: LoopbackModel, patience: float = 60, **more: object
) -> openai.types.chat.ChatCompletion:
    async with client(model, patience) as asking:
        asked = {"model": "any", "messages": HELLO} | more
        return await asking.chat.completions.create(**asked)


async def stream(
    model: LoopbackModel, patience: float = 60
) -> list[openai.types.chat.ChatCompletionChunk]:
    async with client(model, patience) as asking:
        chunks = await asking.chat.completions.create(
            model="any", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        return [chunk async for chunk in chunks]


@pytest.mark.parametrize("path", ["completions", "responses"])
async def test_an_answer_may_say_whose_it_is(path: str) -> None:
    async with LoopbackModel([Answer("Hi.", model="dated-1"), "Hi."]) as model:
        async with client(model) as asking:
            for expected in ("dated-1", "any"):
                if path == "completions":
                    given = await asking.chat.completions.create(model="any", messages=HELLO)
                else:
                    given = await asking.responses.create(model="any", input=HELLO)
                assert given.model == expected


async def test_an_answer_is_given_whole() -> None:
    async with LoopbackModel([CALLING]) as model:
        given = await ask(model)
    message = given.choices[0].message
    assert given.choices[0].finish_reason == "tool_calls"
    assert message.content == "Let me see."
    assert [(call.id, call.function.name) for call in message.tool_calls] == [
        ("call_1_0", "add"),
        ("own", "rest"),
    ]
    assert message.tool_calls[0].function.arguments == '{"a":1,"b":[2,"three"]}'
    assert (given.usage.prompt_tokens, given.usage.completion_tokens) == (3, 4)


async def test_an_answer_is_given_in_pieces() -> None:
    async with LoopbackModel([CALLING]) as model:
        chunks = await stream(model)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert [delta.content for delta in deltas if delta.content] == ["Let ", "me ", "see."]
    arguments = ["", ""]
    for delta in deltas:
        for call in delta.tool_calls or ():
            arguments[call.index] += call.function.arguments
    assert arguments == ['{"a":1,"b":[2,"three"]}', "{}"]
    assert chunks[-1].usage.total_tokens == 7


async def test_both_protocols_are_spoken() -> None:
    async with LoopbackModel([CALLING, CALLING]) as model, client(model) as asking:
        whole = await asking.responses.create(model="any", input=HELLO, instructions="Be brief.")
        async with asking.responses.stream(model="any", input=HELLO) as events:
            streamed = await events.get_final_response()
    for given in (whole, streamed):
        assert given.output_text == "Let me see."
        assert [item.name for item in given.output if item.type == "function_call"] == [
            "add",
            "rest",
        ]
        assert given.usage.total_tokens == 7
    assert "Be brief." in model.requests[0].text


async def test_an_output_is_data() -> None:
    async with LoopbackModel([Answer(output={"ok": True})]) as model:
        assert (await ask(model)).choices[0].message.content == '{"ok":true}'


async def test_a_function_answers_what_it_is_asked() -> None:
    async def echo(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        return f"{request.messages[0]['content']} {request.headers['authorization']}"

    async with LoopbackModel(echo) as model:
        assert (await ask(model)).choices[0].message.content == "Hello. Bearer key"


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_a_request_is_refused(status: int) -> None:
    async with LoopbackModel([HttpRefusal(status, "No.", retry_after=1.5)]) as model:
        with raising(openai.APIStatusError, "No.") as caught:
            await ask(model)
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "1.5"


@pytest.mark.parametrize("way", [ask, stream])
@pytest.mark.parametrize(
    ("line", "error"),
    [
        (BrokenReply("Half of it"), openai.APIConnectionError),
        (StalledReply("Half of it"), openai.APITimeoutError),
        (StalledReply(), openai.APITimeoutError),
        (InvalidReply(), ValueError),
    ],
)
async def test_an_answer_does_not_come_whole(
    way: object, line: BrokenReply | StalledReply | InvalidReply, error: type[Exception]
) -> None:
    async with LoopbackModel([line]) as model:
        with pytest.raises(error):
            await way(model, 0.5 if isinstance(line, StalledReply) else 60)
        if isinstance(line, StalledReply):
            await until(lambda: model.abandoned == 1)


@pytest.mark.parametrize("way", [ask, stream])
async def test_an_answer_takes_its_time(way: object) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with LoopbackModel([SlowReply("Slow.", 0.1)]) as model:
        await way(model)
    assert loop.time() - began >= 0.1


async def test_what_a_provider_refuses_is_refused() -> None:
    unnamed = {"type": "function", "function": {"name": "a b", "parameters": {}}}
    called = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function"}]}
    orphan = {"role": "tool", "tool_call_id": "2", "content": "x"}
    wrong = [
        {"messages": []},
        {"tools": [unnamed]},
        {"messages": [*HELLO, called]},
        {"messages": [*HELLO, called, orphan]},
        {"messages": [*HELLO, called, *HELLO]},
    ]
    unanswered = {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{}"}
    given = {"type": "function_call_output", "call_id": "2", "output": "x"}
    async with LoopbackModel(lambda request: "Fine.") as model, client(model) as asking:
        for more in wrong:
            with pytest.raises(openai.BadRequestError):
                await ask(model, **more)
        for items in ([], [unanswered], [given]):
            with pytest.raises(openai.BadRequestError):
                await asking.responses.create(model="any", input=items)
        assert model.requests[-1].results == ["x"]


async def test_lines_run_out_and_functions_fail() -> None:
    def fail(request: ModelRequest) -> str:
        raise ValueError("no such luck")

    async with LoopbackModel([]) as empty, LoopbackModel(fail) as failing:
        with raising(openai.BadRequestError, "0", "1"):
            await ask(empty)
        with raising(openai.BadRequestError, "no such luck"):
            await ask(failing)


async def test_lines_that_nobody_asked_for_are_noticed() -> None:
    async with LoopbackModel(["One.", "Two."]) as model:
        await ask(model)
        with raising(EngineError, "1"):
            model.assert_complete()
        await ask(model)
        model.assert_complete()


async def test_models_are_listed_and_nothing_else_is_there() -> None:
    async with LoopbackModel([], name="mine") as model, client(model) as asking:
        assert [each.id for each in (await asking.models.list()).data] == ["mine"]
        with raising(openai.NotFoundError, "POST /v1/embeddings"):
            await asking.embeddings.create(model="any", input="x")


async def test_what_a_test_raises_stays_what_it_is() -> None:
    with raising(AssertionError, "five"):
        async with LoopbackModel([]):
            raise AssertionError("It is not five.")


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize(
    "body", [b"", b"Hello.", b"[]", b'{"messages": ["Hi."], "input": ["Hi."]}']
)
async def test_what_is_no_request_is_refused_and_the_next_one_answered(
    path: str, body: bytes
) -> None:
    async with LoopbackModel(["Unheard.", "Hi."]) as model:
        async with client(model) as asking:
            with pytest.raises(openai.BadRequestError):
                await asking.post(f"/{path}", cast_to=object, content=body)
        assert (await ask(model)).choices[0].message.content == "Hi."
