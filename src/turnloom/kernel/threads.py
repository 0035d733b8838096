"""Threads for code of users: a tenant has its own, and what stores do off the loop uses others."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

# Those in use, by tenant and purpose.
_Limiters: TypeAlias = WeakValueDictionary[tuple[str, str], CapacityLimiter]

# How many plain functions of a tenant are called at once.
AT_ONCE = 40

# Modules of users that are imported, which runs them.
LOADING = "loading"

_tenant: ContextVar[str] = ContextVar("turnloom-tenant", default="")
_limiters: RunVar[WeakValueDictionary[tuple[str, str], CapacityLimiter]] = RunVar(
    "turnloom-threads"
)


@contextmanager
def on_behalf_of(tenant: str) -> Generator[None]:
    """A scope in which code of users is called in threads of this tenant."""
    before = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(before)


def threads(purpose: str = "calls", most: int = AT_ONCE) -> CapacityLimiter:
    """What limits the threads of the current tenant, for one purpose."""
    known = _limiters.get(None)
    if known is None:
        known = _Limiters()
        _limiters.set(known)
    key = _tenant.get(), purpose
    limiter = known.get(key)
    if limiter is None:
        limiter = known[key] = CapacityLimiter(most)
    return limiter


async def in_thread(call: Callable[[], T], limiter: CapacityLimiter | None = None) -> T:
    """What code of a user gives that is called in a thread; an interruption leaves it alone."""
    return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter or threads())
