"""Beliefs in a SQLite file, beside the log."""

import json
import math
from collections.abc import Mapping, Sequence

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.writer import Write, Writer
from turnloom.guards.spec import Belief, Observation, Pool


class Observing(Write[None]):
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

    def __init__(self, database: Database) -> None:
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
