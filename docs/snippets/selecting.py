"""Of two carriers, the better one gets more and more of the parcels."""

import asyncio
from collections import Counter

from pydantic import BaseModel

from turnloom import Guards, Loom, Selection, Task, artifact_type

ON_TIME = {"bike": 0.9, "post": 0.6}


@artifact_type
class Parcel(BaseModel):
    number: int
    town: str = "Bath"


@artifact_type
class Delivered(BaseModel):
    by: str
    confidence: float


async def carry(task: Task) -> Delivered:
    return Delivered(by=task.agent, confidence=ON_TIME[task.agent])


async def main() -> None:
    selection = Selection(candidates=("bike", "post"), category=lambda it: it.town, seed=4)
    async with Loom(store="memory") as app:
        board = app.board("parcels", guards=Guards(selection=selection))
        for name in selection.candidates:
            board.agent(name).consumes(Parcel).publishes(Delivered).with_engines(carry)
        for number in range(1, 41):
            parcel = await board.publish(Parcel(number=number), id=f"parcel-{number}")
            await board.run_until_idle()
            if number in (10, 40):
                made, _ = await board.query_artifacts()
                by = Counter(each.payload.get("by") for each in made)
                print(f"{number} parcels: bike {by['bike']}, post {by['post']}")
            if number == 40:
                print(await app.explain.route(parcel.run or "", 5))


asyncio.run(main())
