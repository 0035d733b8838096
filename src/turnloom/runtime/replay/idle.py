"""An event loop that says when nothing is left to run in it."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class IdleSelector(selectors.DefaultSelector):
    """Calls `on_idle` when its loop is about to wait; it returns whether it made something
    ready."""

    def __init__(self) -> None:
        super().__init__()
        self.on_idle: Callable[[], bool] | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready files; without waiting, if a callback became ready."""
        if timeout != 0 and self.on_idle is not None and self.on_idle():
            timeout = 0
        return super().select(timeout)


def run_until_over(make: Callable[[IdleSelector], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a loop of its own, in this thread."""
    selector = IdleSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(make(selector))
