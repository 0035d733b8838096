"""Signals that tell this process to stop, beside the server that handles them."""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Calls a function in the loop when the process is told to stop; what handled the signal before
    handles it still.

    Servers wait for open requests before they say that they stop, and a stream is a request that
    does not end by itself.
    """

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._before: dict[signal.Signals, tuple[Any, Any]] = {}

    def listen(self) -> None:
        """Listen from now on. Signals without a handler, and other threads, are left alone."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for each in STOPPING:
            before = signal.getsignal(each)
            if callable(before):
                handler = self._handler(loop, before)
                signal.signal(each, handler)
                self._before[each] = (handler, before)

    def rest(self) -> None:
        """Listen no more."""
        for each, (handler, before) in self._before.items():
            if signal.getsignal(each) is handler:
                signal.signal(each, before)
        self._before.clear()

    def _handler(
        self, loop: asyncio.AbstractEventLoop, before: Callable[[int, Any], Any]
    ) -> Callable[[int, Any], None]:
        def handle(number: int, at: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._told)
            before(number, at)

        return handle
