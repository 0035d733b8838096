"""Small facts to fill a log under test with."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.kernel.values import Json
from turnloom.log.events import RunCancelled, RunFailed, RunFinished, RunPaused, RunStarted
from turnloom.log.logic import Codec
from turnloom.log.spec import Event, Fact, RunKey

# How many seconds a suite waits for something that must happen.
PATIENCE = 60.0
# Whose everything is that is not said to be another's.
TENANT = "acme"
OTHER = "globex"
BEGINNING = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class Noted(Fact, frozen=True):
    """Somebody noted a text."""

    kind = "test.noted"

    text: str


class Measured(Fact, frozen=True):
    """Somebody measured something: a field of every shape that JSON has."""

    kind = "test.measured"

    value: Json
    unit: str = "m"
    parts: tuple[int, ...] = ()
    labels: dict[str, str] = {}


class Unheard(Fact, frozen=True):
    """A fact that `CODEC` does not know."""

    kind = "test.unheard"


_RUNS = (RunStarted, RunPaused, RunFinished, RunFailed, RunCancelled)
CODEC = Codec([Noted, Measured, ArtifactPublished, ArtifactConsumed, *_RUNS])


def key(run: str, tenant: str = TENANT) -> RunKey:
    """Which run of a tenant an id names."""
    return RunKey(tenant, run)


def event(
    run: str, seq: int, fact: Fact | None = None, *, id: str = "", cause: int | None = None
) -> Event:
    """An event of a run at a position; its id says the position unless one is given."""
    data = fact or Noted(f"note {seq}")
    at = BEGINNING + timedelta(seconds=seq)
    return Event(
        id or f"{run}/{seq}", run, seq, at, kind=data.kind, actor="tester", data=data, cause=cause
    )


def started(run: str, workflow: str, user: str, seconds: int) -> Event:
    """The first event of a run of a workflow, so many seconds after the beginning of all."""
    fact = RunStarted(workflow, "", "", "", files={}, code={}, tenant=TENANT, user=user)
    at = BEGINNING + timedelta(seconds=seconds)
    return Event(f"{run}/1", run, 1, at, kind=fact.kind, actor="tester", data=fact)


def events(run: str, count: int, after: int = 0) -> list[Event]:
    """Events for the positions behind `after`."""
    return [event(run, seq) for seq in range(after + 1, after + count + 1)]


@contextmanager
def refused(kind: type[Exception]) -> Generator[None, None, None]:
    """Expect that the block raises an error of this kind."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected, and nothing was raised.")


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    with anyio.fail_after(PATIENCE):
        while True:
            if holds():
                return
            await anyio.sleep(0.001)
