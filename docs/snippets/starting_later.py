"""A run that starts by itself at an instant."""

import asyncio
from datetime import timedelta

from pydantic import BaseModel

from turnloom import Flow, Loom
from turnloom.testing import FakeClock


class Reminder(BaseModel, frozen=True):
    text: str = ""
    is_sent: bool = False


def send(reminder: Reminder) -> dict[str, bool]:
    print(f"Reminder: {reminder.text}")
    return {"is_sent": True}


reminding = Flow("reminding", Reminder).start_with(send)


async def main() -> None:
    clock = FakeClock()  # so that the example need not wait
    async with Loom(store="memory", clock=clock) as app:
        run = await app.start(reminding, Reminder(text="water the plants"), at="2h")
        print("due now:", len(await app.schedules.fire_due()))
        clock.advance(timedelta(hours=2))
        print("due then:", len(await app.schedules.fire_due()))
        await run.outcome()


asyncio.run(main())
