"""Cancels that a library loses."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def heeding_cancels() -> Generator[None]:
    """End the task after this block if it was cancelled inside, whatever the block made of it. A
    library that cleans up when it is cancelled may raise another error instead, or go on.

    Raises:
        CancelledError: the task was cancelled inside.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except Exception as error:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError from error
        raise
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
