"""Forks a run in processes that are killed: each before another statement of the store."""

import asyncio
import os
import signal
from collections.abc import Iterable
from itertools import count
from typing import Any

from psycopg import AsyncCursor

from tests.forks.test_forks import clerk
from turnloom import Loom
from turnloom.adapters.sqlite.writer import Writer


def kill_before(number: int) -> None:
    """Kill this process before so many statements were executed: writes to a file, or all that
    PostgreSQL is sent."""
    statements, begin, execute = count(1), Writer.__init__, AsyncCursor.execute

    def pass_on(statement: str) -> None:
        if next(statements) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(self: Writer, connection: Any) -> None:
        begin(self, connection)
        connection.set_trace_callback(pass_on)

    async def sent(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
        pass_on(str(query))
        return await execute(self, query, *rest, **options)

    Writer.__init__ = traced
    AsyncCursor.execute = sent  # type: ignore[method-assign]


async def fork(store: str, run: str, at: int) -> None:
    """Fork a run, and drive the fork to its end."""
    async with Loom(store=store, engine=clerk) as app:
        found = await app.handle(run).fork(at, answer="tea", values={"tone": "cool"})
        await found.finished()


def main(store: str, run: str, at: int, numbers: Iterable[int]) -> None:
    """Fork the run in one process after the other; print how many were killed."""
    killed = 0
    for number in numbers:
        child = os.fork()
        if not child:
            kill_before(number)
            asyncio.run(fork(store, run, at))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        killed += status != 0
    print(killed)
