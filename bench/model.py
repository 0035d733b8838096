"""A model server on loopback, in a separate process so that its CPU time is not counted."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

from bench.workload import PLAIN
from turnloom.testing import LoopbackModel, ModelRequest

# Models by name: one answers at once, one after 50 ms.
QUICK, SLOW = "quick", "slow"
LATENCY = 0.05


async def answer(request: ModelRequest) -> str:
    """Give every request the same answer."""
    await asyncio.sleep(LATENCY if request.body["model"] == SLOW else 0)
    return PLAIN.text


async def serve() -> None:
    """Serve until the parent process ends."""
    async with LoopbackModel(answer) as model:
        print(model.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def running_server() -> Iterator[str]:
    """Start the server and yield its address."""
    command = [sys.executable, "-m", "bench.model"]
    root = Path(__file__).parents[1]
    with Popen(command, cwd=root, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin and process.stdout
        yield process.stdout.readline().strip()
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(serve())
