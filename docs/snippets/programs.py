"""Two DSPy programs take turns: one from types, one with a tool that writes a variable."""

import asyncio

import dspy
from pydantic import BaseModel

from turnloom import Context, Loom, artifact_type
from turnloom.adapters.dspy import DSPyProgramEngine
from turnloom.testing import LoopbackModel


@artifact_type
class Letter(BaseModel):
    text: str


@artifact_type
class Complaint(BaseModel):
    about: str
    urgent: bool


def field(name: str, value: object) -> str:
    """A field in the format that DSPy expects of models; here they are on loopback."""
    return f"[[ ## {name} ## ]]\n{value}\n"


LINES = [
    field("reasoning", "A lift that is stuck cannot wait.")
    + field("about", "the lift")
    + field("urgent", True),
    field("next_thought", "Who repairs it?")
    + field("next_tool_name", "on_duty")
    + field("next_tool_args", '{"trade": "lifts"}'),
    field("next_thought", "That is all.")
    + field("next_tool_name", "finish")
    + field("next_tool_args", "{}"),
    field("reasoning", "Bo is on duty.") + field("answer", "Bo is on the way."),
]


def dispatching(ctx: Context) -> dspy.Module:
    """A program with its own tool."""

    def on_duty(trade: str) -> str:
        """Who is on duty for a trade."""
        ctx["trade"] = trade
        return "Bo"

    return dspy.ReAct("complaint: dict -> answer", tools=[on_duty])


async def main() -> None:
    async with LoopbackModel(LINES) as model, Loom(store="memory") as app:
        sorting = DSPyProgramEngine(dspy.ChainOfThought, "any", base_url=model.url)
        helping = DSPyProgramEngine(dispatching, "any", base_url=model.url)
        board = app.board("house")
        sorter = board.agent("sorter").description("Sort letters.").consumes(Letter)
        sorter.publishes(Complaint).with_engines(sorting)
        board.agent("helper").consumes(Complaint).with_engines(helping)

        letter = await board.publish(Letter(text="The lift is stuck!"))
        await board.run_until_idle()
        print(model.requests[0].messages[1]["content"].partition("\n\n")[0])
        for event in await app.history.events(str(letter.run)):
            match event.kind:
                case "effect.done":
                    print(event.kind, "in", event.data.call)
                case "artifact.published":
                    print(event.kind, event.data.artifact.payload)
                case "context.changed":
                    print(event.kind, event.data.name, event.data.value)
                case "agent.text":
                    print(event.kind, event.data.text)


asyncio.run(main())
