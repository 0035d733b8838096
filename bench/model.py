"""A model on loopback in a process of its own, so that its work is not counted as ours."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

from bench.workload import PLAIN
from turnloom.testing import LoopbackModel, ModelRequest

# Models by name: one that answers at once, and one that takes 50 ms.
QUICK, SLOW = "quick", "slow"
LATENCY = 0.05


async def answer(request: ModelRequest) -> str:
    """The same words to all."""
    await asyncio.sleep(LATENCY if request.body["model"] == SLOW else 0)
    return PLAIN.text


async def serve() -> None:
    """Answer until nobody needs us."""
    async with LoopbackModel(answer) as model:
        print(model.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def served() -> Iterator[str]:
    """The address of the model."""
    command = [sys.executable, "-m", "bench.model"]
    root = Path(__file__).parents[1]
    with Popen(command, cwd=root, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin and process.stdout
        yield process.stdout.readline().strip()
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(serve())
