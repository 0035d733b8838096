"""The interview from Python: start it, answer it, explain it."""

import asyncio

from turnloom import Loom

ANSWERS = ["Invoices.", "Kim types them in.", "When they are booked.", "Yes."]


async def main() -> None:
    async with Loom(store="memory") as app:
        run = await app.start("workflows/Interview")
        answers = iter(ANSWERS)
        async for event in run.events():
            if event.kind == "agent.text":
                print(f"{event.data.agent}: {event.data.text}")
            elif event.kind == "question.asked":
                await run.answer(event.data.question, next(answers))
        print(await app.explain.variable(run.id, "plan_accepted"))


asyncio.run(main())
