"""Selection with stored beliefs."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import anyio

from turnloom.errors import NoCandidates, UnknownKind
from turnloom.guards.events import SelectionMade
from turnloom.guards.logic.selection import SelectionRequest, observations, outcomes, select
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Pool, Selection
from turnloom.kernel.values import error_text
from turnloom.log.ports import EventLog
from turnloom.log.service import all_runs
from turnloom.log.spec import Event, RunKey

# Seconds that a turn waits for beliefs.
PATIENCE = 1.0

# The number of seeds for which choices are counted.
MOST = 10_000

log = logging.getLogger("turnloom.guards")


class Selector:
    """Makes choices, and stores their outcomes; `chance` returns a unique word, for selections
    without a seed."""

    def __init__(
        self, store: BeliefStore, chance: Callable[[], str], patience: float = PATIENCE
    ) -> None:
        self._store = store
        self._chance = chance
        self._patience = patience
        self._seeded: OrderedDict[tuple[Pool, str], int] = OrderedDict()

    @property
    def follows_log(self) -> bool:
        """Whether outcomes are stored together with the log."""
        return self._store.follows_log

    async def choose(
        self, selection: Selection, asked: SelectionRequest, tenant: str, workflow: str
    ) -> SelectionMade:
        """Make a choice. If beliefs are unavailable the prior counts alone; if every candidate is
        excluded, none is chosen. The notes say both."""
        pool = Pool(tenant, workflow, asked.category)
        beliefs, notes = await self._beliefs(pool, asked.among)
        asked = asked._replace(notes=(*asked.notes, *notes))
        if selection.seed is None:
            chance = self._chance()
        else:
            chance = self._next(pool, f"{selection.seed}/{outcomes(asked, beliefs)}")
        try:
            return select(selection, asked, beliefs, chance)
        except NoCandidates as error:
            return SelectionMade(
                "",
                asked.category,
                excluded=tuple(asked.among),
                meant=asked.meant,
                artifact=asked.artifact,
                notes=(*asked.notes, str(error)),
            )

    def _next(self, pool: Pool, seeded: str) -> str:
        """The seed of a choice's draws: the declared seed, the number of known outcomes, and the
        number of choices made with these before. Ids of runs differ between apps, and are not part
        of it."""
        number = self._seeded.pop((pool, seeded), 0)
        self._seeded[pool, seeded] = number + 1
        if len(self._seeded) > MOST:
            self._seeded.popitem(last=False)
        return f"{seeded}/{number}"

    async def _beliefs(
        self, pool: Pool, agents: Sequence[str]
    ) -> tuple[Mapping[str, Belief], tuple[str, ...]]:
        try:
            with anyio.fail_after(self._patience):
                return await self._store.beliefs(pool, agents), ()
        except Exception as error:  # noqa: BLE001 - recorded as a note: no turn fails for it
            why = self._why(error)
            return {}, (f"beliefs are unavailable, the prior counts alone: {why}",)

    async def learn(self, run: RunKey, events: Sequence[Event]) -> None:
        """Store the outcomes in a run's events; repeating it changes nothing."""
        found = observations(run.tenant, events)
        if not found:
            return
        try:
            with anyio.fail_after(self._patience):
                await self._store.observe(found)
        except Exception as error:  # noqa: BLE001 - the log has them: no turn fails for it
            log.warning(
                "outcomes of run %s are not stored in the beliefs yet: %s", run.id, self._why(error)
            )

    def _why(self, error: Exception) -> str:
        is_late = isinstance(error, TimeoutError)
        return f"no answer within {self._patience:g} s" if is_late else error_text(error)


async def rebuild(stored: EventLog, beliefs: BeliefStore, tenant: str) -> None:
    """Store the outcomes in the logs of a tenant's runs; repeating it changes nothing.

    Raises:
        StoreUnavailable: some may be stored; the caller may retry the same call.
    """
    newest_first = [last.run async for _, last in all_runs(stored, tenant)]
    for run in reversed(newest_first):
        try:
            events = await stored.read(RunKey(tenant, run))
        except UnknownKind as error:
            log.warning("skipped a run: %s", error)
            continue
        await beliefs.observe(observations(tenant, events))
