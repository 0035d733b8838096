"""Golden logs: played, written once, and read.

    python -m tests.golden.recording NAME…

records scenes that have no golden log yet. A golden log is never recorded again: to change what it
holds is to say in `allowed.py` what differs, and why.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.golden import board_turns, boards, contexts, conversations, flow_ends, flows
from tests.golden.paths import Plain, plain
from tests.golden.scenes import SCENES
from tests.support.world import World

LOGS = Path(__file__).parent / "logs"

# Importing a module of scenes registers them.
MODULES = (board_turns, boards, contexts, conversations, flow_ends, flows)


async def play(name: str, where: Path, world: World | None = None) -> list[list[Plain]]:
    """The logs of a scene, the run that was begun first coming first."""
    world = world or World()
    await SCENES[name](world, where)
    return [plain(events) for events in (await world.logs()).values()]


def read(name: str) -> list[list[Plain]]:
    """The golden logs of a scene."""
    runs: list[list[Plain]] = []
    for line in (LOGS / f"{name}.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["seq"] == 1:
            runs.append([])
        runs[-1].append(event)
    return runs


def record(name: str) -> None:
    """Write the golden logs of a scene, unless there are some."""
    with tempfile.TemporaryDirectory() as where:
        runs = asyncio.run(play(name, Path(where)))
    assert runs, f"scene {name!r} has no run"
    LOGS.mkdir(exist_ok=True)
    with (LOGS / f"{name}.jsonl").open("x", encoding="utf-8") as file:
        for event in (event for run in runs for event in run):
            file.write(json.dumps(event, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        record(each)
