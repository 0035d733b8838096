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
from turnloom.kernel.values import said
from turnloom.log.ports import EventLog
from turnloom.log.service import all_runs
from turnloom.log.spec import Event, RunKey

# Seconds that a turn waits for what is known of its candidates.
PATIENCE = 1.0

# For how many seeds and numbers of outcomes it is kept how many choices were made with them.
MOST = 10_000

log = logging.getLogger("turnloom.guards")


class Selecting:
    """Makes choices, and lets what came of them be known; `chance` gives a word that is used
    nowhere else, for selections without a seed."""

    def __init__(
        self, store: BeliefStore, chance: Callable[[], str], patience: float = PATIENCE
    ) -> None:
        self._store = store
        self._chance = chance
        self._patience = patience
        self._seeded: OrderedDict[tuple[Pool, str], int] = OrderedDict()

    @property
    def follows_log(self) -> bool:
        """Whether outcomes are known as soon as they are on record."""
        return self._store.follows_log

    async def choose(
        self, selection: Selection, asked: SelectionRequest, tenant: str, workflow: str
    ) -> SelectionMade:
        """The choice that is made now. Where beliefs cannot be had the prior counts alone, and
        where nobody is left nobody is chosen; both is said in it."""
        pool = Pool(tenant, workflow, asked.category)
        beliefs, trouble = await self._beliefs(pool, asked.among)
        asked = asked._replace(notes=(*asked.notes, *trouble))
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
        """What the draws of a seeded choice follow from: its seed, how many outcomes are known, and
        how many choices were made with these before. Names of runs differ from app to app, and are
        no part of it."""
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
        except Exception as error:  # noqa: BLE001 - put on record: no turn fails for that
            why = self._why(error)
            return {}, (f"the prior counts alone, as beliefs cannot be had: {why}",)

    async def learn(self, run: RunKey, events: Sequence[Event]) -> None:
        """Let it be known what events of a run say of outcomes; again changes nothing."""
        found = observations(run.tenant, events)
        if not found:
            return
        try:
            with anyio.fail_after(self._patience):
                await self._store.observe(found)
        except Exception as error:  # noqa: BLE001 - the log has it, and no turn fails for that
            log.warning("beliefs are behind the log of run %s: %s", run.id, self._why(error))

    def _why(self, error: Exception) -> str:
        is_late = isinstance(error, TimeoutError)
        return f"no answer within {self._patience:g} s" if is_late else said(error)


async def rebuild(stored: EventLog, beliefs: BeliefStore, tenant: str) -> None:
    """Let a store know the outcomes that the logs of a tenant's runs have; again changes nothing.

    Raises:
        StoreUnavailable: some of it may be there; the same may be tried again later.
    """
    newest_first = [first.run async for first, _ in all_runs(stored, tenant)]
    for run in reversed(newest_first):
        try:
            events = await stored.read(RunKey(tenant, run))
        except UnknownKind as error:
            log.warning("a run is left out: %s", error)
            continue
        await beliefs.observe(observations(tenant, events))
