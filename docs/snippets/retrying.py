"""Failures are recorded and retried on request; a loop is stopped."""

import asyncio

from pydantic import BaseModel

from turnloom import Loom, LoopLimit, ReactionFailed, Task, artifact_type


@artifact_type
class Ticket(BaseModel):
    number: int


class Printer:
    """An engine that can run out of paper."""

    def __init__(self) -> None:
        self.has_paper = False

    async def __call__(self, task: Task) -> Ticket:
        if not self.has_paper:
            raise RuntimeError("no paper")
        print(f"{task.agent} takes turn {task.turn}")
        return Ticket(number=task.inputs[0].payload["number"] + 1)


async def main() -> None:
    printer = Printer()
    async with Loom(store="memory") as app:
        board = app.board("seats")
        board.agent("usher").consumes(Ticket).publishes(Ticket).with_engines(printer)
        await board.publish(Ticket(number=7))
        errors = await board.run_until_idle(raise_errors=False)
        printer.has_paper = True
        for failed in errors.exceptions if errors else ():
            if isinstance(failed, ReactionFailed):
                print(f"{failed.agent} failed in turn {failed.turn}")
                await board.retry(failed)
        await board.run_until_idle()

        endless = app.board("endless", max_turns=3)
        (
            endless.agent("echo")
            .consumes(Ticket)
            .publishes(Ticket)
            .prevent_self_trigger(False)
            .with_engines(printer)
        )
        await endless.publish(Ticket(number=0))
        try:
            await endless.run_until_idle()
        except* LoopLimit as group:
            print(group.exceptions[0])


asyncio.run(main())
