"""Work that ran side by side is replayed in the order of the log."""

import asyncio
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, Path, append


class Trip(BaseModel):
    model_config = ConfigDict(frozen=True)
    notes: Annotated[list[str], append] = []
    total: int = 0


def steps(name: str, passes: int) -> Path[Any]:
    """A path of two steps, which take so many passes of the loop."""

    async def book(state: Trip) -> dict[str, Any]:
        for _ in range(passes):
            await asyncio.sleep(0)
        return {"notes": [name]}

    def pay(state: Trip) -> dict[str, Any]:
        return {"notes": [f"{name} paid"]}

    return Path().then(book, name=f"book_{name}").then(pay, name=f"pay_{name}")


def count(state: Trip) -> dict[str, Any]:
    return {"total": len(state.notes)}


async def test_paths_of_a_fork_in_sqlite_are_replayed(tmp_path: FilePath) -> None:
    paths = [steps(name, passes) for name, passes in (("a", 9), ("b", 0), ("c", 4), ("d", 2))]
    flow = Flow("trips", Trip).start_with(count, name="begin").fork(*paths, join=count)
    async with Loom(store=str(tmp_path / "runs.db")) as app:
        outcome = await app.run(flow, Trip())
        assert outcome.state.total == 8
        replay = await app.history.replay(outcome.run_id)
    assert replay.divergence is None and replay.same == replay.events
