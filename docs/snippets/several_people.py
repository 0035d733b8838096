"""One program that serves several people: each sees what is theirs."""

import asyncio

from turnloom import Forbidden, Loom, Principal, Run, UnknownRun


async def rests(run: Run) -> None:
    """Print the chat of a run until it waits."""
    async for shown in run.chat():
        if shown.text:
            print(f"  {shown.agent or shown.by}: {shown.text}")
        if shown.status == "waiting":
            return


async def main() -> None:
    async with Loom(store="memory") as app:
        ann = app.as_principal(Principal("acme", "ann"))
        bob = app.as_principal(Principal("acme", "bob"))
        dev = app.as_principal(Principal("acme", "dev", "developer"))

        run = await ann.start("workflows/Interview")
        await rests(run)
        print([each.run == run.id for each in await ann.questions()], await bob.questions())
        print((await run.send("Invoices.", id="m1")).verdict)

        try:
            await bob.handle(run.id).summary()
        except UnknownRun as error:
            print("bob:", error.code)
        try:
            await ann.explain.turn(run.id, 1)
        except Forbidden as error:
            print("ann:", error.code)
        print("dev:", (await dev.history.events(run.id))[0].kind)


asyncio.run(main())
