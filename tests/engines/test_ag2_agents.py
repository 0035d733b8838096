"""Agents of AG2 that take turns: by the suite that every engine passes, and with their tools."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from ag2 import Agent, Context, Variable
from ag2.config import OpenAIConfig
from ag2.testing import TestConfig

from tests.engines.test_oddities import ENDED, chunks
from tests.support.engines import Asking
from tests.support.folders import write_folder
from tests.support.raising import raising
from tests.support.tasks import task
from turnloom import Engine, Loom
from turnloom.adapters.ag2 import AG2AgentEngine, Patience
from turnloom.agents.spec import Answer, Exchange, ToolCall, ToolResult, ToolSchema, Usage
from turnloom.errors import EngineError, UsageError
from turnloom.log.spec import Event
from turnloom.testing import LoopbackModel, UnfinishedReply
from turnloom.testing.contracts.facts import PATIENCE

FILES = {
    "orchestrator.yaml": "{initial_message: My parcel is lost., initial_agent: Desk}",
    "agents.yaml": "{Desk: {system_message: Sort it.}, Clerk: {system_message: Settle it.}}",
    "context_variables.yaml": """
        definitions:
          topic: {type: string, source: {type: derived, default: none, triggers: []}}
          seen: {type: array, source: {type: derived, default: [], triggers: []}}
          tier: {type: string, source: {type: static, value: beta}}
        agents: {Clerk: {variables: [topic]}}
        """,
    "handoffs.yaml": """
        - {source_agent: Desk, target_agent: Clerk, handoff_type: condition,
           condition: '${topic} == "parcel"'}
        - {source_agent: Desk, target_agent: terminate, handoff_type: after_work}
        - {source_agent: Clerk, target_agent: terminate, handoff_type: after_work}
        """,
}
LOOKED = "tools: [{agent: Desk, file: books.py, function: look}]"
BOOKS = "def look(name: str) -> str:\n    return f'{name} is in town'\n"


def configured(model: LoopbackModel) -> OpenAIConfig:
    """What an agent asks a model on loopback with."""
    url = model.url
    return OpenAIConfig("loopback", api_key="none", base_url=url, streaming=True, max_retries=0)


def desk(model: LoopbackModel, *tools: Callable[..., Any], prompt: str = "") -> Engine:
    """An agent of AG2 with tools of its own."""
    config = configured(model)
    return AG2AgentEngine(lambda: Agent("desk", prompt or (), config=config, tools=tools))


def called(name: str, text: str = "", **arguments: Any) -> Answer:
    """A call of a tool."""
    return Answer(text, calls=(ToolCall(name, arguments, f"id-{name}"),))


class TestAG2Agents(Asking):
    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        config = configured(model)
        patience = self.patience(silence)
        yield AG2AgentEngine(lambda: Agent("any", config=config), patience=patience)


async def played(
    where: Path, lines: Sequence[Any], *tools: Callable[..., Any], **files: str
) -> tuple[LoopbackModel, list[Event]]:
    """The log of a run whose agents have these tools of their own."""
    extra = {name.replace("_", "."): text for name, text in files.items()}
    folder = write_folder(where, {**FILES, **extra})
    async with LoopbackModel(lines) as model:
        async with Loom(store="memory", engine=desk(model, *tools)) as app:
            run = await app.start(folder)
            with anyio.fail_after(PATIENCE):
                await run.finished()
            return model, list(await app.history.events(run.id))


def every(events: Sequence[Event], kind: str) -> list[Any]:
    return [event.data for event in events if event.kind == kind]


async def sort_out(topic: str, context: Context) -> str:
    """Say what a letter is about."""
    context.variables["topic"] = topic
    return f"{topic}, {context.variables['tier']}"


async def test_what_its_tools_write_is_on_record_and_decides_who_is_next(tmp_path: Path) -> None:
    lines = [called("sort_out", "Hm.", topic="parcel"), "A parcel.", "It is found."]
    model, events = await played(tmp_path, lines, sort_out)
    (changed,) = every(events, "context.changed")
    assert (changed.name, changed.value, changed.writer) == ("topic", "parcel", "agent:Desk")
    routes = [event.seq for event in events if event.kind == "route.decided"]
    (written,) = (event.seq for event in events if event.kind == "context.changed")
    assert routes[0] < written < routes[1]
    assert [each.text for each in every(events, "agent.text")] == ["A parcel.", "It is found."]
    assert model.requests[1].results == ["parcel, beta"]
    assert '- topic: \\"parcel\\"' in model.requests[2].text


async def test_its_tools_are_not_called_by_an_answer_without_an_end(tmp_path: Path) -> None:
    for is_closed in (True, False):
        cut = UnfinishedReply(called("sort_out", topic="parcel"), is_closed)
        model, events = await played(tmp_path, [cut, "Nothing to sort."], sort_out)
        assert len(model.requests) == 2
        assert every(events, "context.changed") == []
        assert [each.text for each in every(events, "agent.text")] == ["Nothing to sort."]


@pytest.mark.parametrize("wrong", ['{"topic": ', '{"topic": NaN}', '["parcel"]'])
async def test_arguments_that_are_no_data_go_back_to_the_model(wrong: str, tmp_path: Path) -> None:
    heard: list[str] = []

    async def note(topic: str = "none") -> str:
        """Note what it is about."""
        heard.append(topic)
        return "Noted."

    function = {"name": "note", "arguments": wrong}
    call = {"index": 0, "id": "id0", "type": "function", "function": function}
    begun = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    model, events = await played(tmp_path, [chunks(begun, ENDED), "Sorry."], note)
    assert heard == []
    assert [each.text for each in every(events, "agent.text")] == ["Sorry."]
    (told,) = model.requests[1].results
    assert "ValueError" in told


async def test_a_model_cannot_give_its_tools_their_context(tmp_path: Path) -> None:
    async def look_up(context: Context, tier: Annotated[str, Variable()], **more: Any) -> str:
        """Look up who asks."""
        return f"{context.variables['tier']} {tier} {more.get('context', '')}"

    forged = {"variables": {"tier": "gold"}}
    lines = [called("look_up", context=forged, tier="gold", __ctx__=forged), "So."]
    model, _ = await played(tmp_path, lines, look_up)
    (told,) = model.requests[1].results
    assert "gold" not in told


async def test_what_its_tools_did_is_on_record_with_the_answer(tmp_path: Path) -> None:
    lines = [called("sort_out", "Hm.", topic="money"), "About money."]
    _, events = await played(tmp_path, lines, sort_out)
    (answered,) = every(events, "model.answered")
    assert answered.before == (
        Exchange(
            "Hm.",
            (ToolCall("sort_out", {"topic": "money"}, "id-sort_out"),),
            (ToolResult("money, beta"),),
        ),
    )
    made = [each.name for each in every(events, "effect.done")]
    assert [name.partition(" after ")[0] for name in made] == ["model 1", "model 2"]


async def test_tools_of_both_kinds_are_called_in_one_answer(tmp_path: Path) -> None:
    both = (ToolCall("sort_out", {"topic": "money"}, "own"), ToolCall("look", {"name": "Ann"}))
    lines = [Answer("Let me see.", calls=both), "Ann is in town."]
    model, events = await played(tmp_path, lines, sort_out, tools_yaml=LOOKED, books_py=BOOKS)
    (returned,) = every(events, "tool.returned")
    assert (returned.tool, returned.result) == ("look", "Ann is in town")
    assert model.requests[1].results == ["money, beta", "Ann is in town"]
    said = [each.text for each in every(events, "agent.text")]
    assert said == ["Let me see.", "Ann is in town."]
    assert len(every(events, "context.changed")) == 1


async def test_a_change_in_place_is_a_write(tmp_path: Path) -> None:
    def remember(context: Context) -> int:
        context.variables["seen"].append("Ann")
        return len(context.variables["seen"])

    _, events = await played(tmp_path, [called("remember"), "Done."], remember)
    assert [(each.name, each.value) for each in every(events, "context.changed")] == [
        ("seen", ["Ann"])
    ]


async def test_a_write_that_is_refused_fails_the_tool_and_the_model_is_told(tmp_path: Path) -> None:
    def promote(context: Context) -> None:
        context.variables["tier"] = "gold"

    model, events = await played(tmp_path, [called("promote"), "I may not."], promote)
    (told,) = model.requests[1].results
    assert "WriteRefused: 'tier'" in told
    assert [each.name for each in every(events, "context.refused")] == ["tier"]
    assert events[-1].kind == "run.finished"


async def test_a_tool_of_its_own_that_fails_does_not_fail_the_turn(tmp_path: Path) -> None:
    def burn() -> None:
        raise RuntimeError("It burns.")

    model, events = await played(tmp_path, [called("burn"), "Fire!"], burn)
    assert "RuntimeError: It burns." in model.requests[1].results[0]
    (answered,) = every(events, "model.answered")
    assert "It burns." in answered.before[0].results[0].error


async def test_what_it_shows_of_its_own_is_said_to_be_added() -> None:
    async with LoopbackModel([called("sort_out", topic="money"), "Money."]) as model:
        answer = await desk(model, sort_out, prompt="Be kind.")(task(("user", "Hi.")))
    first, second = model.requests
    assert [each["role"] for each in first.messages] == ["system", "user"]
    assert answer.added[:3] == ("Be kind.", "sort_out", "Say what a letter is about.")
    assert answer.added[-2:] == ('{"topic":"money"}', answer.before[0].results[0].error)
    assert "Be kind." in second.text and "Be Ann." in second.text


async def test_what_all_its_requests_used_is_counted() -> None:
    def use(number: int) -> Answer:
        calls = (ToolCall("nothing", {}, str(number)),) if number < 3 else ()
        return Answer("Yes.", Usage(10, number), calls)

    def nothing() -> str:
        return "nothing"

    async with LoopbackModel([use(1), use(2), use(3)]) as model:
        answer = await desk(model, nothing)(task(("user", "Hi.")))
    assert answer.usage == Usage(30, 6)


async def test_a_tool_of_the_workflow_and_one_of_the_agent_have_different_names() -> None:
    tools = (ToolSchema("sort_out", "", {"type": "object", "properties": {}}),)
    async with LoopbackModel([]) as model:
        with raising(UsageError, "'sort_out'"):
            await desk(model, sort_out)(task(("user", "Hi."), tools=tools))


@pytest.mark.parametrize(
    ("make", "error", "values"),
    [
        (lambda: None, UsageError, ["None", "`ag2.Agent`"]),
        (lambda: Agent("desk"), UsageError, ["'Ann'", "`config`"]),
        (
            lambda: Agent("desk", config=TestConfig(RuntimeError("No idea."))),
            EngineError,
            ["'TestConfig'", "No idea."],
        ),
        (
            lambda: Agent("desk", middleware=[_broken], config=TestConfig("Hi.")),
            EngineError,
            ["'Ann'", "RuntimeError: Broken."],
        ),
    ],
)
async def test_what_cannot_answer_says_why(
    make: Callable[[], Any], error: type[Exception], values: list[str]
) -> None:
    with raising(error, *values):
        await AG2AgentEngine(make, patience=Patience(retries=0))(task(("user", "Hi.")))


def _broken(event: Any, context: Any) -> Any:
    raise RuntimeError("Broken.")
