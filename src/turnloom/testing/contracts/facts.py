"""Sample facts and events, and helpers that the suites share."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.kernel.values import Json
from turnloom.log.events import RunCancelled, RunFailed, RunFinished, RunPaused, RunStarted
from turnloom.log.logic import Codec
from turnloom.log.spec import Event, Fact, RunKey

# Timeout in seconds for anything that must happen.
PATIENCE = 60.0
# The default tenant of the suites.
TENANT = "acme"
OTHER = "globex"
BEGINNING = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class Noted(Fact, frozen=True):
    """A sample fact with a text."""

    kind = "test.noted"

    text: str


class Measured(Fact, frozen=True):
    """A sample fact with fields of every JSON type."""

    kind = "test.measured"

    value: Json
    unit: str = "m"
    parts: tuple[int, ...] = ()
    labels: dict[str, str] = {}


class UnknownFact(Fact, frozen=True):
    """A fact of a kind that `CODEC` does not have."""

    kind = "test.unheard"


_RUNS = (RunStarted, RunPaused, RunFinished, RunFailed, RunCancelled)
CODEC = Codec([Noted, Measured, ArtifactPublished, ArtifactConsumed, *_RUNS])


def key(run: str, tenant: str = TENANT) -> RunKey:
    """The key of a run."""
    return RunKey(tenant, run)


def event(
    run: str, seq: int, fact: Fact | None = None, *, id: str = "", cause: int | None = None
) -> Event:
    """An event of a run at a position; by default its id names the run and the position."""
    data = fact or Noted(f"note {seq}")
    at = BEGINNING + timedelta(seconds=seq)
    return Event(
        id or f"{run}/{seq}", run, seq, at, kind=data.kind, actor="tester", data=data, cause=cause
    )


def started(run: str, workflow: str, user: str, seconds: int) -> Event:
    """The first event of a run of a workflow, some seconds after `BEGINNING`."""
    fact = RunStarted(workflow, "", "", "", files={}, code={}, tenant=TENANT, user=user)
    at = BEGINNING + timedelta(seconds=seconds)
    return Event(f"{run}/1", run, 1, at, kind=fact.kind, actor="tester", data=fact)


def events(run: str, count: int, after: int = 0) -> list[Event]:
    """A number of events after a position."""
    return [event(run, seq) for seq in range(after + 1, after + count + 1)]


@contextmanager
def refused(kind: type[Exception]) -> Generator[None, None, None]:
    """Expect an error of this type."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"Expected {kind.__name__}, but nothing was raised.")


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(PATIENCE):
        while True:
            if holds():
                return
            await anyio.sleep(0.001)
