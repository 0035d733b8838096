"""The interview workflow from a program: a scripted user, the conversation, one explanation.

Run it from the root of the repository: python examples/interview.py
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from turnloom import Event, Loom, Run

WORKFLOW = Path(__file__).parents[1] / "workflows" / "Interview"
ANSWERS = (
    "The monthly expense report.",
    "Everyone mails receipts to Lee, who types them into a sheet.",
    "When the sheet adds up and Lee has signed it.",
    "Looks good to me.",
)


def told(event: Event) -> str | None:
    """Format an event of the conversation as a line, or return nothing for other events."""
    match event.kind:
        case "agent.text" if not event.data.hidden:
            return f"{event.data.agent}: {event.data.text}"
        case "question.answered":
            return f"{event.data.by}: {event.data.value}"
        case "context.changed":
            return f"  ({event.data.name} is now {event.data.value})"
        case _:
            return None


async def converse(run: Run, answers: Iterator[str], user: str) -> int:
    """Follow a run to its end, answer its questions, and return the number of its last turn."""
    last = 0
    async for event in run.events():
        if line := told(event):
            print(line)
        if event.kind == "turn.started":
            last = event.data.turn
        elif event.kind == "question.asked":
            await run.answer(event.data.question, next(answers))
    return last


async def main() -> None:
    """Run the interview in memory, then explain its last turn."""
    async with Loom(store="memory") as app:
        run = await app.start(str(WORKFLOW), user_id="robin", app_id="acme")
        last = await converse(run, iter(ANSWERS), "robin")
        print()
        print(await app.explain.turn(run.id, last, app_id=run.app_id))


if __name__ == "__main__":
    asyncio.run(main())
