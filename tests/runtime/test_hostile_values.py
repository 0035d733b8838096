"""Whatever users' code gives or raises, wherever it is asked: what is on record can be read."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.hostile import hostile
from turnloom import (
    AgentStep,
    Answer,
    Board,
    ContextSlice,
    Document,
    Flow,
    Join,
    Loom,
    Publication,
    RagCollection,
    Task,
    ToolCall,
    TurnloomError,
    artifact_type,
    use_ui_tool,
)
from turnloom.runtime.logic import codec


class State(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int = 0
    any: Any = None


@artifact_type(name="values.Order")
class Order(BaseModel):
    n: int = 0


@artifact_type(name="values.Bill")
class Bill(BaseModel):
    any: Any = None


numbers = count()
Scene = Callable[[Loom, Any], Awaitable[None]]
SCENES: dict[str, Scene] = {}


def scene(make: Callable[[Any], Any]) -> None:
    """A flow or a board that is given a hostile value at one place."""

    async def play(app: Loom, value: Any) -> None:
        made = make(value)
        if isinstance(made, Flow):
            await app.run(cast("Flow[State]", made))
        else:
            board = app.board(f"board{next(numbers)}")
            made(board)
            await board.publish(Order())
            await board.run_until_idle()

    SCENES[make.__name__] = play


async def first(state: State) -> None: ...


async def last(state: State) -> dict[str, Any]:
    return {"n": 1}


def flow_of(step: Any, **settings: Any) -> Flow[State]:
    return Flow("flow", State).start_with(step, **settings).finally_(last)


@scene
def step_gives(value: Any) -> Any:
    async def step(state: State) -> Any:
        return value

    return flow_of(step)


@scene
def step_sets(value: Any) -> Any:
    async def step(state: State) -> Any:
        return {"any": value}

    return flow_of(step)


@scene
def step_raises(value: Any) -> Any:
    async def step(state: State) -> Any:
        raise ValueError(value)

    return flow_of(step, retry=0)


@scene
def effect_gives(value: Any) -> Any:
    async def step(state: State, ctx: Any) -> None:
        await ctx.once("effect", lambda: value)

    return flow_of(step)


@scene
def effect_is_called(value: Any) -> Any:
    async def step(state: State, ctx: Any) -> None:
        await ctx.once(value, lambda: 1)

    return flow_of(step)


@scene
def step_writes(value: Any) -> Any:
    async def step(state: State, ctx: Any) -> None:
        ctx["any"] = value

    return flow_of(step)


@scene
def step_writes_under(value: Any) -> Any:
    async def step(state: State, ctx: Any) -> None:
        ctx[value] = 1

    return flow_of(step)


@scene
def branch_goes_by(value: Any) -> Any:
    flow = Flow("flow", State).start_with(first)
    return flow.branch(lambda state: value, {"a": last}, name="which").finally_(end)


@scene
def loop_ends_by(value: Any) -> Any:
    flow = Flow("flow", State).start_with(first)
    return flow.repeat_until(lambda state: value, last, max_iterations=2).finally_(end)


@scene
def step_is_checked_by(value: Any) -> Any:
    return flow_of(first, validate=(lambda state: value, "no"))


@scene
def approval_shows(value: Any) -> Any:
    flow = Flow("flow", State).start_with(first)
    return flow.await_approval("boss", context=lambda state: value).finally_(last)


@scene
def undoing_gives(value: Any) -> Any:
    async def undo(state: State) -> Any:
        return value

    async def fail(state: State) -> Any:
        raise ValueError("x")

    return Flow("flow", State).start_with(first, compensate=undo).finally_(fail)


async def end(state: State) -> None: ...


def asking(*answers: Any, tools: Any = (), apply: Any = None, **said: Any) -> AgentStep[State]:
    """A step whose agent gives these answers, one after the other."""
    given = list(answers)

    async def answer(task: Task) -> Any:
        return given.pop(0) if len(given) > 1 else given[0]

    class Ask(AgentStep[State]):
        engine = staticmethod(answer)

        def user_prompt(self, state: State) -> Any:
            return said.get("prompt", "Go.")

        def apply(self, state: State, answer: Any, context: Any) -> Any:
            return apply

    Ask.tools = tools
    return Ask()


CALLS = Answer(calls=(ToolCall("tool", {}),))


@scene
def agent_answers(value: Any) -> Any:
    return flow_of(asking(value))


@scene
def agent_is_asked(value: Any) -> Any:
    return flow_of(asking("Yes.", prompt=value))


@scene
def answer_changes(value: Any) -> Any:
    return flow_of(asking("Yes.", apply=value))


@scene
def tool_gives(value: Any) -> Any:
    async def tool() -> Any:
        return value

    return flow_of(asking(CALLS, "Done.", tools=[tool]))


@scene
def tool_raises(value: Any) -> Any:
    async def tool() -> Any:
        raise ValueError(value)

    return flow_of(asking(CALLS, "Done.", tools=[tool]))


@scene
def tool_writes(value: Any) -> Any:
    async def tool(context_variables: Any) -> Any:
        context_variables["any"] = value

    return flow_of(asking(CALLS, "Done.", tools=[tool]))


@scene
def tool_asks(value: Any) -> Any:
    async def tool(context_variables: Any) -> Any:
        await use_ui_tool("form", value)

    return flow_of(asking(CALLS, "Done.", tools=[tool]))


@scene
def hook_gives(value: Any) -> Any:
    def hook(context_variables: Any) -> Any:
        context_variables["any"] = value
        return value

    hooks = [{"trigger": "before_agent", "function": hook}]
    return Flow("flow", State, hooks=hooks).start_with(asking("Yes.")).finally_(last)


@scene
def hook_raises(value: Any) -> Any:
    def hook(context_variables: Any) -> Any:
        raise ValueError(value)

    hooks = [{"trigger": "before_chat", "function": hook}]
    return Flow("flow", State, hooks=hooks).start_with(asking("Yes.")).finally_(last)


@scene
def trigger_gives(value: Any) -> Any:
    def decide(event: Any, context: Any) -> Any:
        return value

    trigger = {"type": "function", "function": decide}
    source = {"type": "derived", "default": None, "triggers": [trigger]}
    variables = {"definitions": {"any": {"type": "object", "source": source}}}
    return Flow("flow", State, variables=variables).start_with(asking("Yes.")).finally_(last)


def agent(board: Board, engine: Any, **said: Any) -> Any:
    consumes = said.pop("consumes", {})
    types = (Order, Order) if "join" in consumes else (Order,)
    consumed = board.agent("clerk").consumes(*types, **consumes)
    return consumed.publishes(Bill, **said).with_engines(engine)


async def bill(task: Task) -> Any:
    return Bill()


@scene
def engine_gives(value: Any) -> Any:
    async def engine(task: Task) -> Any:
        return value

    return lambda board: agent(board, engine)


@scene
def engine_raises(value: Any) -> Any:
    async def engine(task: Task) -> Any:
        raise ValueError(value)

    return lambda board: agent(board, engine)


@scene
def engine_publishes(value: Any) -> Any:
    async def engine(task: Task) -> Any:
        return Publication(Bill(any=value))

    return lambda board: agent(board, engine)


@scene
def engine_publishes_for(value: Any) -> Any:
    async def engine(task: Task) -> Any:
        return [
            Publication(Bill(), tags=value),
            Publication(Bill(), visibility=value),
            Publication(Bill(), partition=value),
        ]

    return lambda board: agent(board, engine)


@scene
def predicate_says(value: Any) -> Any:
    return lambda board: agent(board, bill, consumes={"where": lambda order: value})


@scene
def product_is_checked_by(value: Any) -> Any:
    return lambda board: agent(board, bill, validate=lambda made: value)


@scene
def key_is(value: Any) -> Any:
    return lambda board: agent(board, bill, consumes={"join": Join(by=lambda each: value)})


@scene
def score_is(value: Any) -> Any:
    return lambda board: agent(board, bill).best_of(2, lambda *given: value)


@scene
def provider_gives(value: Any) -> Any:
    async def provider(request: Any) -> Any:
        return value

    return lambda board: agent(board, bill).with_context(provider)


@scene
def provider_gives_items(value: Any) -> Any:
    async def provider(request: Any) -> Any:
        return ContextSlice(items=[{"content": value}, value], metadata={"a": value})

    return lambda board: agent(board, bill).with_context(provider)


@scene
def provider_raises(value: Any) -> Any:
    async def provider(request: Any) -> Any:
        raise ValueError(value)

    return lambda board: agent(board, bill).with_context(provider)


class Handbook(RagCollection):
    pass


async def document_has(app: Loom, value: Any) -> None:
    """A collection is no run, and refuses what it could not give back."""
    shelf = app.collection(Handbook)
    for document in (
        Document(value, "red"),
        Document("a", value),
        Document("b", "red", metadata={"any": value}),
        Document("c", "red", metadata=value),
        Document("d", "red", visibility=value),
    ):
        try:
            await shelf.add([document])
        except TurnloomError:
            continue
    await shelf.search("red", top_k=3)


async def flow_begins_with(app: Loom, value: Any) -> None:
    await app.run(flow_of(first), State(any=value))


async def answer_is(app: Loom, value: Any) -> None:
    async def tool(context_variables: Any) -> Any:
        return await use_ui_tool("form", {})

    run = await app.start(flow_of(asking(CALLS, "Done.", tools=[tool])))
    await run.outcome()
    await run.answer(None, value)
    await run.outcome()


SCENES |= {each.__name__: each for each in (document_has, flow_begins_with, answer_is)}


def complaint(error: BaseException) -> str:
    """What is wrong with how a program learned of an error."""
    if isinstance(error, BaseExceptionGroup):
        return "".join(map(complaint, cast("BaseExceptionGroup[Any]", error).exceptions))
    return "" if isinstance(error, TurnloomError) else f"{type(error).__name__}: {error}"[:200]


async def attempt(app: Loom, play: Scene, value: Any) -> str:
    try:
        async with asyncio.timeout(60):
            await play(app, value)
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return complaint(error)
    return ""


async def read_all(app: Loom) -> int:
    known, runs = codec(), await app.runs()
    for each in runs:
        for event in await app.history.events(each.run):
            assert known.decode(known.encode(event)) == event
        str(await app.explain.timeline(each.run))
    return len(runs)


@pytest.mark.doors
@pytest.mark.parametrize("name", SCENES)
async def test_whatever_code_gives_can_be_read(name: str, tmp_path: Path) -> None:
    store, problems = str(tmp_path / "runs.db"), list[str]()
    async with Loom(store=store) as app:
        for what, value in hostile().items():
            problem = await attempt(app, SCENES[name], value)
            problems += [f"{what}: {problem}"] if problem else []
        runs = await read_all(app)
    async with Loom(store=store) as app:
        assert await read_all(app) == runs
    assert problems == []
