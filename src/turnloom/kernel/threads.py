"""Worker threads for user code, limited for each tenant; stores use other threads."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

# The limiters in use, by tenant and purpose.
_Limiters: TypeAlias = WeakValueDictionary[tuple[str, str], CapacityLimiter]

# The maximum number of concurrent calls of plain functions of a tenant.
AT_ONCE = 40

# The purpose of importing user modules, which runs their code.
LOADING = "loading"

_tenant: ContextVar[str] = ContextVar("turnloom-tenant", default="")
_limiters: RunVar[WeakValueDictionary[tuple[str, str], CapacityLimiter]] = RunVar(
    "turnloom-threads"
)


@contextmanager
def on_behalf_of(tenant: str) -> Generator[None]:
    """A scope in which user code is called in threads of this tenant."""
    before = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(before)


def threads(purpose: str = "calls", most: int = AT_ONCE) -> CapacityLimiter:
    """The limiter of the current tenant's threads for a purpose."""
    known = _limiters.get(None)
    if known is None:
        known = _Limiters()
        _limiters.set(known)
    key = _tenant.get(), purpose
    limiter = known.get(key)
    if limiter is None:
        limiter = known[key] = CapacityLimiter(most)
    return limiter


class UserCalls:
    """Counts the calls of user code that are running."""

    def __init__(self) -> None:
        self.running = 0

    def __enter__(self) -> None:
        self.running += 1

    def __exit__(self, *error: object) -> None:
        self.running -= 1


_calls: ContextVar[UserCalls] = ContextVar("turnloom-calls", default=UserCalls())  # noqa: B039


def user_calls() -> UserCalls:
    """The counter of this context: a call of user code runs in its scope."""
    return _calls.get()


@contextmanager
def counted(calls: UserCalls) -> Generator[None]:
    """A scope in which a counter of its own counts calls of user code."""
    before = _calls.set(calls)
    try:
        yield
    finally:
        _calls.reset(before)


async def in_thread(call: Callable[[], T], limiter: CapacityLimiter | None = None) -> T:
    """Call user code in a thread and return its result; a cancelled call is abandoned."""
    return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter or threads())
