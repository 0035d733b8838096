"""What every test stands on: one backend, no network, no blocking call in the loop, no luck."""

import asyncio
import gc
import ipaddress
import socket
import sys
import time
from asyncio.base_events import _format_handle as format_handle
from collections.abc import AsyncIterator, Generator
from importlib.util import find_spec

import pytest
from coverage import Coverage
from hypothesis import settings

ON_POSTGRES = "tests.support.on_postgres.plugin"
pytest_plugins = [ON_POSTGRES] if find_spec("tests.support") else []

settings.register_profile("turnloom", derandomize=True, deadline=None)
settings.load_profile("turnloom")


class NetworkRefused(RuntimeError):
    """A test reached for a host that is not this one."""


class BlockingCall(RuntimeError):
    """A call that waits was made on the thread of a running loop."""


def refuse_network(address: object) -> None:
    host = address[0] if isinstance(address, tuple) else None
    if isinstance(host, str) and not is_loopback(host):
        raise NetworkRefused(f"Tests have no network, only loopback; this one called {host!r}.")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host in {"localhost", ""}


def refuse_blocking(call: str) -> None:
    if asyncio._get_running_loop() is not None:
        raise BlockingCall(f"{call} blocks the event loop; await it or give it to a thread.")


def watch(event: str, args: tuple[object, ...]) -> None:
    """Audit hook: sees every call on a socket, from Python and from C, on any thread."""
    if not event.startswith("socket."):
        return
    match event, args:
        case "socket.connect", (socket.socket() as peer, address):
            refuse_network(address)
            if peer.gettimeout() != 0:
                refuse_blocking("socket.connect")
        case (("socket.sendto" | "socket.sendmsg"), (_, address)):
            refuse_network(address)
        case "socket.getaddrinfo", (host, *_):
            refuse_network((host.decode() if isinstance(host, bytes) else host,))
        case _:
            pass


def sleep(seconds: float) -> None:
    refuse_blocking("time.sleep")
    blocking_sleep(seconds)


blocking_sleep, time.sleep = time.sleep, sleep
sys.addaudithook(watch)


def pytest_collection_finish() -> None:
    """What is imported by now stays: no collection of garbage looks at it again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Coverage looks away from tests that only repeat what others do: it triples their time."""
    measuring = Coverage.current()
    if measuring is None or not {"hypothesis", "repeats"} & set(item.keywords):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # nor does it look at children
        measuring.stop()
        try:
            return (yield)
        finally:
            measuring.start()


def pytest_sessionfinish() -> None:
    """Keep what was measured now: a worker that then takes long to stop its servers is killed."""
    if measuring := Coverage.current():
        measuring.stop()
        measuring.save()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def strict_loop(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The loop in debug mode; the test fails when one step of it takes 0.25 s of CPU time.

    Wall time would say how busy the machine is. A step that only waits makes a call that
    `refuse_blocking` refuses.
    """
    slow: list[str] = []
    loop, run = asyncio.get_running_loop(), asyncio.Handle._run

    def measure(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run(handle)
        spent = time.thread_time() - start
        if handle._loop is loop and spent >= loop.slow_callback_duration:
            slow.append(f"{spent:.3f} s by {format_handle(handle)}")

    was_debug, was_slow = loop.get_debug(), loop.slow_callback_duration
    loop.set_debug(True)
    loop.slow_callback_duration = 0.25
    monkeypatch.setattr(asyncio.Handle, "_run", measure)
    await asyncio.sleep(0)  # the step that began before is none of the test's
    yield
    await asyncio.sleep(0)  # the step that ran the test ends here and is measured
    loop.set_debug(was_debug)
    loop.slow_callback_duration = was_slow
    assert not slow, f"The loop was held: {slow}"
