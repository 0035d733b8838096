"""Plans of boards and flows, kept so that runs can be compared with what they are pinned to."""

from collections import OrderedDict
from typing import Protocol

from turnloom.log.events import RunStarted
from turnloom.runtime.ports import Plans
from turnloom.runtime.spec import StoredPlan

# The key, in the code digests of a run pinned to part of a plan, of the whole plan's digest.
PLAN = "plan.json"

# Plans in memory.
REMEMBERED = 64


class PinnedPlan(Protocol):
    """A plan that runs are pinned to."""

    @property
    def name(self) -> str:
        """The name of the board or flow."""
        ...

    @property
    def text(self) -> str:
        """The text of the plan."""
        ...

    @property
    def digest(self) -> str:
        """The digest of its text."""
        ...


class RememberedPlans:
    """Plans of a store, of which the latest are kept in memory: what a digest names does not
    change, so that a plan of many runs is read once."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._known: OrderedDict[tuple[str, str], StoredPlan] = OrderedDict()

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Store a plan; an existing one is unchanged."""
        await self._plans.keep(tenant, digest, plan)

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan with this digest, if it is stored and readable."""
        found = self._known.get((tenant, digest)) or await self._plans.find(tenant, digest)
        if found is not None:
            self._known[tenant, digest] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found


async def pin(plans: Plans, tenant: str, plan: PinnedPlan, context: str) -> None:
    """Keep a tenant's plan, with a description of its context."""
    await plans.keep(tenant, plan.digest, StoredPlan(plan.name, plan.text, context))


async def plan_of(plans: Plans, started: RunStarted) -> StoredPlan | None:
    """The plan that a run is pinned to, if there is one and it was kept."""
    return await plans.find(started.tenant, started.code.get(PLAN, started.definition))
