"""Feedback stands beside a run, and chooses runs."""

import asyncio

from pydantic import BaseModel

from turnloom import Flow, Loom


class Reply(BaseModel, frozen=True):
    text: str = ""


def write(reply: Reply) -> dict[str, str]:
    return {"text": "We are open until six."}


replying = Flow("replying", Reply).start_with(write)


async def main() -> None:
    async with Loom(store="memory") as app:
        for score in (0.2, 0.9):
            run = await app.start(replying)
            await run.outcome()
            await run.feedback("helpful", score=score, comment="From the survey.")
        poor = await app.runs(feedback="helpful<0.5")
        for given in await app.feedback.list(poor[0].run):
            print(given.name, given.score, given.who, given.comment)
        found = await app.history.backtest(replying, feedback="helpful<0.5")
        print(len(found.runs), "run was backtested")


asyncio.run(main())
