"""Where errors of users' code came from, as it can be put on record."""

import traceback
from types import TracebackType

from turnloom.kernel.values import writable
from turnloom.variables.logic.secrets import Secrets

# What calls the code of users: we, and what takes a call into a thread or a task for us.
CALLERS = ("turnloom", "anyio", "asyncio", "concurrent", "contextlib", "contextvars", "threading")

# The most frames that are kept, the innermost ones, and the most characters of a line.
FRAMES = 12
LINE = 200


def stack_of(error: BaseException, secrets: Secrets) -> str:
    """The frames of users' code in which an error was raised, without the way to them and without
    secrets; empty if it was raised by code of ours."""
    begin = without_callers(error.__traceback__)
    if begin is None:
        return ""
    walked = traceback.walk_tb(begin)
    kept = [each for each in walked if not _is_ours(each[0].f_globals)][-FRAMES:]
    frames = traceback.StackSummary.extract(iter(kept))
    lines = [f"{each.filename}:{each.lineno} in {each.name}: {each.line}"[:LINE] for each in frames]
    return secrets.received(writable("\n".join(lines)))


def without_callers(trace: TracebackType | None) -> TracebackType | None:
    """A trace from the first frame of users' code on, if there is one."""
    while trace is not None and _package(trace.tb_frame.f_globals) in CALLERS:
        trace = trace.tb_next
    return trace


def _is_ours(names: dict[str, object]) -> bool:
    return _package(names) == "turnloom"


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
