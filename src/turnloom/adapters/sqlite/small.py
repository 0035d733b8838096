"""The small ports of a SQLite store: plans, results, snapshots and beliefs."""

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
        """Store a plan; an existing one is unchanged.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        if await self.find(tenant, digest) is None:
            await self._database.write(_KeepPlan(tenant, digest, msgspec.json.encode(plan)))

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan with this digest, if it is stored and readable.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_PLAN, tenant, digest)
        try:
            return msgspec.json.decode(found[0][0], type=StoredPlan) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("Plan %s is unreadable and treated as missing: %s", digest, error)
            return None


class _KeepResult(StoreWrite[None]):
    __slots__ = ("_expired", "_values")

    def __init__(self, row: tuple[str, str, int | None, bytes, str], now: int) -> None:
        super().__init__()
        self._values = row
        self._expired = (row[0], now)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.DROP_RESULTS, self._expired)
        writer.execute(queries.KEEP_RESULT, self._values)


class _EraseResults(StoreWrite[int]):
    __slots__ = ("_of",)

    def __init__(self, tenant: str, user: str) -> None:
        super().__init__()
        self._of = (tenant, user)

    def apply(self, writer: Writer) -> int:
        return writer.execute(queries.ERASE_RESULTS, self._of).rowcount


class SqliteResults:
    """Cache of step results, for any number of processes."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """The result under a key, unless it has expired; it is valid up to and including its
        expiry.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_RESULT, tenant, key, _micros(now))
        try:
            return msgspec.json.decode(found[0][0]) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("A cached result is unreadable and ignored: %s", error)
            return None

    async def keep(
        self,
        tenant: str,
        key: str,
        value: Json,
        now: datetime,
        until: datetime | None,
        *,
        user: str = "",
    ) -> None:
        """Store a result under a key, replacing an earlier one, and delete the tenant's expired
        results.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        expiry = _micros(until) if until is not None else None
        written = msgspec.json.encode(value)
        row = (tenant, key, expiry, written, user)
        await self._database.write(_KeepResult(row, _micros(now)))

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove the results of a person, and return how many there were; a dry run counts them.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        await self._database.ready()
        if dry_run:
            return self._database.rows(queries.COUNT_RESULTS, tenant, user)[0][0]
        return await self._database.write(_EraseResults(tenant, user))


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
    """The last snapshot of each run."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Store the state of a run at `seq`, replacing an earlier one."""
        await self._database.write(_Save(run, seq, state))

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last snapshot and its position."""
        await self._database.ready()
        found = self._database.rows(queries.LOAD_STATE, *run)
        return found[0] if found else None


class AddObservations(StoreWrite[None]):
    """Adds outcomes, each once; may run inside another write."""

    __slots__ = ("_observations",)

    def __init__(self, observations: Sequence[Observation]) -> None:
        super().__init__()
        self._observations = observations

    def apply(self, writer: Writer) -> None:
        """Add outcomes that are not known yet."""
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
    """Beliefs about agents in the log's file, for any number of processes. Outcomes in events
    appear here at once."""

    follows_log = True

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """The beliefs about agents in a pool; agents without outcomes are left out.

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
        """Add outcomes, each once: known ones are ignored.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: nothing was added; a retry may succeed later.
        """
        await self._database.write(AddObservations(observations))

    async def aclose(self) -> None:
        """Do nothing: it closes with the log."""


def _is_evidence(belief: Belief) -> bool:
    """Whether a stored belief is valid; a damaged row is ignored."""
    numbers = (belief.successes, belief.failures)
    return all(isinstance(each, float) and 0 <= each < math.inf for each in numbers)
