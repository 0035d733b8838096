"""Copy whole runs from one store to another, and verify the copies."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Literal

import msgspec

from turnloom.errors import (
    ArtifactExists,
    Conflict,
    InvalidArtifact,
    StoreUnavailable,
    UnknownKind,
)
from turnloom.kernel.values import as_data
from turnloom.log.events import Pin, RunForked, RunRetried, RunStarted
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.boards import generation
from turnloom.runtime.drive.plans import PLAN
from turnloom.runtime.ports import Copies, Removals, Store, Verifier
from turnloom.runtime.spec import RunCopy

# What became of a run: `copied` whole; `continued` by what it recorded since; the `same` there
# already, or `ahead` there; `refused`, for a reason.
CopyStatus = Literal["copied", "continued", "same", "ahead", "refused"]

# The most runs of one correlation that are counted.
GENERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class CopiedRun:
    """A run that was to be copied: what became of it, how many events were added, and why it was
    refused."""

    tenant: str
    run: str
    status: CopyStatus
    events: int = 0
    reason: str = ""


class _Refused(Exception):
    """A run is not copied, for a reason."""


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """A store that runs are copied from or to, with the ports that this needs. `verifier` and
    `removals` may be missing."""

    store: Store
    copies: Copies
    verifier: Verifier | None = None
    removals: Removals | None = None


class Copying:
    """Copies runs of `source` to `target`, the origin of a branch before the branch.

    A run is written in one transaction, so that no part of it is there after a kill, and counts as
    copied only when it was read back and is equal. Step results, which are a cache, and snapshots,
    which are made again, are not copied.
    """

    def __init__(self, source: CopyEnd, target: CopyEnd) -> None:
        self._source = source
        self._target = target
        self._done: dict[RunKey, CopiedRun] = {}

    async def copy(self, runs: Iterable[RunKey]) -> AsyncGenerator[CopiedRun]:
        """Copy runs, and give each when it is done; those that they branch off come first.

        Raises:
            StoreUnavailable: what was given is copied, and the rest may be later.
        """
        for run in runs:
            waiting = [run]
            while waiting:
                if waiting[-1] in self._done:
                    waiting.pop()
                    continue
                origin = await self._origin(waiting[-1])
                if origin is not None and origin not in self._done:
                    waiting.append(origin)
                    continue
                current = waiting.pop()
                self._done[current] = copied = await self._copied(current, origin)
                yield copied

    async def _origin(self, run: RunKey) -> RunKey | None:
        """The run that a branch begins with; None if there is none, or it cannot be told."""
        try:
            ends = await self._source.store.log.ends(run)
            if ends is None or ends[0].run == run.id:
                return None
            copy = await self._source.copies.read(run)
        except UnknownKind:
            return None
        return RunKey(run.tenant, copy.origin) if copy and copy.origin else None

    async def _copied(self, run: RunKey, origin: RunKey | None) -> CopiedRun:
        try:
            if origin is not None and self._done[origin].status == "refused":
                raise _Refused(f"run {origin.id!r}, which it branches off, is not copied")
            status, events = await self._copy(run)
        except (_Refused, Conflict, ArtifactExists, InvalidArtifact, UnknownKind) as error:
            return CopiedRun(*run, "refused", reason=str(error))
        return CopiedRun(*run, status, events)

    async def _copy(self, run: RunKey) -> tuple[CopyStatus, int]:
        """Copy a run with its plans and its open messages.

        Raises:
            _Refused: it is driven, damaged, or another one in the target.
        """
        await self._check_idle(self._source, run)
        await self._check_sound(self._source, run)
        copy = await self._source.copies.read(run)
        if copy is None:
            raise _Refused("it is not there any more")
        await self._check_idle(self._source, run)
        there = await self._target.copies.read(run)
        status, rest = self._missing(copy, there)
        await self._copy_plans(run, copy)
        await self._copy_removed(run, copy)
        if rest is not None:
            await self._check_idle(self._target, run)
            await self._target.copies.write(run, rest)
            await self._compare(run, copy)
        for id, message in await self._source.store.inbox.pending(run):
            await self._target.store.inbox.offer(run, id, message)
        return status, rest.position - rest.after if rest else 0

    async def _check_idle(self, end: CopyEnd, run: RunKey) -> None:
        if holder := await end.store.claims.held(run):
            raise _Refused(f"it is driven by {holder}; copy it again when it parks or ends")

    async def _check_sound(self, end: CopyEnd, run: RunKey) -> None:
        if end.verifier is None:
            return
        async for verified in end.verifier.verify(run.tenant, run.id):
            if verified.problems:
                raise _Refused(f"it is damaged: {verified.problems[0]}")

    def _missing(self, copy: RunCopy, there: RunCopy | None) -> tuple[CopyStatus, RunCopy | None]:
        """What the target lacks of a run, if anything.

        Raises:
            _Refused: the target has another run of this id.
        """
        if there is None:
            return "copied", copy
        if (there.origin, there.after) != (copy.origin, copy.after):
            raise _Refused("the target has another run of this id, which begins elsewhere")
        for ours, theirs in zip(copy.batches, there.batches, strict=False):
            if _digest(ours) != _digest(theirs):
                raise _Refused(
                    f"the target has another run of this id: it differs from event {ours[0].seq} on"
                )
        rest = copy.batches[len(there.batches) :]
        if rest:
            return "continued", RunCopy(rest)
        return "ahead" if len(there.batches) > len(copy.batches) else "same", None

    async def _compare(self, run: RunKey, copy: RunCopy) -> None:
        """Read a copy back.

        Raises:
            StoreUnavailable: it is not what was written.
        """
        stored = await self._target.copies.read(run)
        try:
            if stored is None or self._missing(copy, stored)[1] is not None:
                raise _Refused("events are missing")
            await self._check_sound(self._target, run)
        except _Refused as error:
            raise StoreUnavailable(
                f"The copy of run {run.id!r} is not what was written: {error}. Check the disk of "
                "the target, and `turnloom store verify` it."
            ) from error

    async def _copy_plans(self, run: RunKey, copy: RunCopy) -> None:
        """Copy the plans that a run is pinned to, before the run."""
        for digest in {*_plans_of(copy)}:
            if plan := await self._source.store.plans.find(run.tenant, digest):
                await self._target.store.plans.keep(run.tenant, digest, plan)

    async def _copy_removed(self, run: RunKey, copy: RunCopy) -> None:
        """Copy the ids of removed runs of the same correlation, which are not used again."""
        source, target = self._source.removals, self._target.removals
        number = _number(run.id, copy.batches[0][0].data)
        if source is None or target is None or number is None:
            return
        ids = _correlated(copy.batches[0][0].data)
        for step in (-1, 1):
            near = number + step
            while near > 0 and await source.is_removed(RunKey(run.tenant, ids(near))):
                await target.remember(RunKey(run.tenant, ids(near)))
                near += step


def _digest(batch: Sequence[Event]) -> bytes:
    """The digest of a batch, whatever the order in which a store gives the keys of its objects."""
    return blake2b(_encode_lines(batch), digest_size=16).digest()


_encode_lines = msgspec.json.Encoder(order="deterministic").encode_lines


def _plans_of(copy: RunCopy) -> Iterator[str]:
    """The digests of the plans that a run is or was pinned to."""
    for event in (each for batch in copy.batches for each in batch):
        pinned: RunStarted | Pin | None = None
        if isinstance(event.data, RunStarted):
            pinned = event.data
        elif isinstance(event.data, RunRetried | RunForked):
            pinned = event.data.pin
        if pinned is not None:
            yield pinned.code.get(PLAN, pinned.definition)


def _correlated(started: RunStarted) -> Callable[[int], str]:
    """The id of the run with a number of the same correlation."""
    seed = as_data([started.workflow, started.collects or started.correlation, started.definition])
    return partial(generation, started.workflow, seed)


def _number(run: str, started: object) -> int | None:
    """The number of a run in its named correlation, or among those that collect the same."""
    if not isinstance(started, RunStarted):
        return None
    if not started.collects and started.correlation in ("", run):
        return None
    ids = _correlated(started)
    return next((number for number in range(1, GENERATIONS) if ids(number) == run), None)
