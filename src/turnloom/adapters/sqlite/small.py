"""The small ports of a SQLite store: plans, results, snapshots, beliefs."""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.kernel.values import Json
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import StoredPlan

_log = logging.getLogger("turnloom.sqlite")


class _KeepPlan(StoreWrite[None]):
    __slots__ = ("_values",)

    def __init__(self, tenant: str, digest: str, plan: bytes) -> None:
        super().__init__()
        self._values = (tenant, digest, plan)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.KEEP_PLAN, self._values)


class SqlitePlans:
    """Plans by tenant and digest, for any number of processes."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Keep a plan; one that is there already stays as it is.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        if await self.find(tenant, digest) is None:
            await self._database.write(_KeepPlan(tenant, digest, msgspec.json.encode(plan)))

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan of this digest, if it was kept and can be read.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_PLAN, tenant, digest)
        try:
            return msgspec.json.decode(found[0][0], type=StoredPlan) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("The plan %s cannot be read, and counts as lost: %s", digest, error)
            return None


class _KeepResult(StoreWrite[None]):
    __slots__ = ("_over", "_values")

    def __init__(self, place: tuple[str, str], until: int | None, value: bytes, now: int) -> None:
        super().__init__()
        self._values = (*place, until, value)
        self._over = (place[0], now)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.DROP_RESULTS, self._over)
        writer.execute(queries.KEEP_RESULT, self._values)


class SqliteResults:
    """What steps came to, for any number of processes."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """What a tenant keeps under a key, up to and including the instant that it is kept until.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_RESULT, tenant, key, _micros(now))
        try:
            return msgspec.json.decode(found[0][0]) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("A kept result cannot be read, and counts as lost: %s", error)
            return None

    async def keep(
        self, tenant: str, key: str, value: Json, now: datetime, until: datetime | None
    ) -> None:
        """Keep a value of a tenant under a key, in place of another; what of the tenant's is over
        by now goes.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        over = _micros(until) if until is not None else None
        written = msgspec.json.encode(value)
        await self._database.write(_KeepResult((tenant, key), over, written, _micros(now)))


def _micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)


class _Save(StoreWrite[None]):
    __slots__ = ("_run", "_values")

    def __init__(self, run: RunKey, seq: int, state: bytes) -> None:
        super().__init__()
        self._run = run
        self._values = (*run, seq, state)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.SAVE_STATE, self._values)
        writer.keep_ids(self._run)


class SqliteSnapshots:
    """The last folded state of each run."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Keep the state of a run as of `seq`, in place of an earlier one."""
        await self._database.write(_Save(run, seq, state))

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last state kept, with its position."""
        await self._database.ready()
        found = self._database.rows(queries.LOAD_STATE, *run)
        return found[0] if found else None


class Observing(StoreWrite[None]):
    """Outcomes that are added, each once; another write may apply it inside its own change."""

    __slots__ = ("_observations",)

    def __init__(self, observations: Sequence[Observation]) -> None:
        super().__init__()
        self._observations = observations

    def apply(self, writer: Writer) -> None:
        """Add the outcomes that are not there yet."""
        for each in self._observations:
            seen = (each.pool.tenant, each.run, each.event)
            if writer.execute(queries.ADD_OBSERVATION, seen).rowcount:
                _add(writer, each)


def _add(writer: Writer, seen: Observation) -> None:
    if seen.decay:
        kept = 1 - seen.decay
        writer.execute(queries.FADE, (kept, kept, *seen.pool))
    values = (*seen.pool, seen.agent, seen.credit, 1 - seen.credit)
    writer.execute(queries.ADD_EVIDENCE, values)


class SqliteBeliefs:
    """What is known of agents, in the log's file, for any number of processes; what the log is told
    of outcomes is here at once."""

    follows_log = True

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known of these agents in a pool; nothing of those without any outcome.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        wanted = json.dumps(list(agents), ensure_ascii=False)
        rows = self._database.rows(queries.EVIDENCE_OF, *pool, wanted)
        known = {agent: Belief(successes, failures) for agent, successes, failures in rows}
        return {agent: each for agent, each in known.items() if _is_evidence(each)}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each at once and each once: one that is there already changes nothing.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: nothing was added; the same may be tried again later.
        """
        await self._database.write(Observing(observations))

    async def aclose(self) -> None:
        """Nothing of its own is open: it is closed with the log."""


def _is_evidence(belief: Belief) -> bool:
    """Whether what is kept can be counted with; a damaged row counts as nothing known."""
    numbers = (belief.successes, belief.failures)
    return all(isinstance(each, float) and 0 <= each < math.inf for each in numbers)
