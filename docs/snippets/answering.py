"""Questions from Python: the open question, who may answer, and which answers are accepted."""

import asyncio

from turnloom import Loom, QuestionExpired, Run
from turnloom.errors import NotYours, UsageError


async def until_it_asks(run: Run) -> None:
    async for event in run.events():
        if event.kind == "run.paused":
            return


async def main() -> None:
    async with Loom(store="memory") as app:
        run = await app.start("docs/snippets/Leave", user_id="kim", app_id="acme")
        await until_it_asks(run)
        question = await run.question(user_id="kim")
        assert question
        print(question.id, question.tool, question.component, question.display, question.payload)
        try:
            await run.answer(question.id, {"decision": "approved"}, user_id="ann")
        except NotYours as error:
            print("ann:", error)
        try:
            await run.answer(question.id, {"decision": "maybe"})
        except UsageError as error:
            print("maybe:", error)
        print(await run.answer(question.id, {"decision": "approved"}))
        print(await run.answer(question.id, {"decision": "declined"}))
        await run.finished()
        try:
            await run.answer(None, {"decision": "declined"})
        except (UsageError, QuestionExpired) as error:
            print("later:", error)


asyncio.run(main())
