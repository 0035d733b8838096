"""A run that outlives the program: started, left waiting, resumed and answered."""

import asyncio

from turnloom import DefinitionError, Loom, Run


async def until_it_asks(run: Run) -> str:
    async for event in run.events():
        if event.kind == "question.asked":
            return event.data.question
    raise RuntimeError("It ended without a question.")


async def main() -> None:
    async with Loom(store="embedded.db") as app:
        run = await app.start("workflows/Interview", user_id="ann", app_id="acme")
        print("asked:", await until_it_asks(run))

    # Another program, later.
    async with Loom(store="embedded.db") as app:
        (summary,) = await app.runs(app_id="acme")
        print(summary.workflow, summary.status, summary.user)
        run = await app.resume(summary.run, app_id="acme")
        delivery = await run.answer(None, "Invoices.")
        print("answer:", delivery)
        print("cancelled:", await run.cancel(by="ann", reason="later"))
        end = await run.finished()
        if end.kind == "run.cancelled":
            print(end.kind, end.data.reason)

    async with Loom(store="memory") as app:
        try:
            await app.start("workflows")
        except DefinitionError as error:
            for problem in error.diagnostics:
                print(problem.code, problem.message)


asyncio.run(main())
