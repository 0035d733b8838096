"""Two agents of a board, and one last model call: one of them gets it."""

import asyncio

from pydantic import BaseModel

from turnloom import BudgetExceeded, Guards, Loom, RunBudget, Task, artifact_type


@artifact_type
class Article(BaseModel):
    """The artifact that the agents read."""

    text: str


@artifact_type
class Remark(BaseModel):
    """The artifact that they publish."""

    by: str


async def read(task: Task) -> Remark:
    """A remark."""
    return Remark(by=task.agent)


async def main() -> None:
    async with Loom(store="memory") as app:
        board = app.board(guards=Guards(budget=RunBudget(model_calls=1, wall_time=60)))
        for name in ("critic", "friend"):
            board.agent(name).consumes(Article).publishes(Remark).with_engines(read)
        await board.publish(Article(text="On budgets."))
        failures = await board.run_until_idle(raise_errors=False)
        remarks, _ = await board.query_artifacts()
        print(len([each for each in remarks if each.produced_by in ("critic", "friend")]), "remark")
        for failure in failures.exceptions if failures else ():
            if isinstance(failure, BudgetExceeded):
                print(str(failure).partition(". ")[2])


if __name__ == "__main__":
    asyncio.run(main())
