"""A week at the shop: a hundred customers, each with a tool of some age."""

import asyncio

from turnloom import Loom, Run


async def serve(run: Run, months: int) -> None:
    """Answer the adviser as a customer, once it asks."""
    async for event in run.events():
        if event.kind == "run.paused":
            await run.answer(None, f"My drill stopped working. It is {months} months old.")
    await run.finished()


async def main() -> None:
    async with Loom() as app:
        for customer in range(100):
            run = await app.start("docs/snippets/Warranty", user_id=f"customer{customer}")
            await serve(run, customer % 40 + 1)
    print("100 customers")


asyncio.run(main())
