"""Components around the turns and calls of agents, in all three forms."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Flow,
    Loom,
    StateDelegatingProvider,
    StepContext,
    Task,
    TurnContext,
    artifact_type,
    from_provider,
)


@artifact_type
class Letter(BaseModel):
    """The artifact that wakes the clerk."""

    text: str


class Case(BaseModel):
    """The state of the flow."""

    model_config = ConfigDict(frozen=True)
    text: str = ""
    reply: str = ""


class Memory:
    """Prepares the context of a turn, before anything is gathered."""

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Put items where the provider finds them, and take the turn."""
        ctx.state["context_snapshot"] = [{"note": f"run of {ctx.run.workflow}"}]
        await call_next()


class Counting:
    """Counts calls of engines."""

    def __init__(self) -> None:
        self.calls = 0

    async def around_call(self, task: Task, call_next: Callable[[Task], Awaitable[Any]]) -> Any:
        """Call the engine, and count the call."""
        self.calls += 1
        return await call_next(task)


async def engine(task: Task) -> Answer:
    """Report the context."""
    return Answer(f"{task.agent} was shown {len(task.context.items)} item")


class Reply(AgentStep[Case]):
    """Answers a case."""

    def user_prompt(self, state: Case) -> str:
        """What is asked."""
        return state.text

    def apply(self, state: Case, answer: str, context: AssembledContext) -> Any:
        """What the answer changes."""
        return {"reply": answer}


async def close(state: Case, ctx: StepContext) -> None:
    """Show the reply."""
    print(state.reply)


async def main() -> None:
    """The same components on a board and in a flow."""
    counting = Counting()
    step = Reply().with_components(counting, Memory()).max_concurrency(4)
    flow = (
        Flow("cases", Case)
        .start_with(step, context=[from_provider(StateDelegatingProvider())])
        .finally_(close)
    )
    async with Loom(store="memory", engine=engine) as app:
        board = app.board("letters")
        (
            board.agent("clerk")
            .consumes(Letter)
            .with_context(StateDelegatingProvider())
            .with_components(counting, Memory())
            .max_concurrency(4)
        )
        letter = await board.publish(Letter(text="Hello?"))
        await board.run_until_idle()
        events = await app.history.events(letter.run or "")
        print(*[event.data.text for event in events if event.kind == "agent.text"])
        await app.run(flow, Case(text="Hello?"))
    print(counting.calls, "calls")


asyncio.run(main())
