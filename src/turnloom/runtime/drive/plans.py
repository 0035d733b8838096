"""The plans of boards and flows, kept so that runs can be compared with what they are pinned to."""

from typing import Protocol

from turnloom.log.events import RunStarted
from turnloom.runtime.ports import Plans
from turnloom.runtime.spec import StoredPlan

# Where a run that is pinned to a part of a plan has the digest of the whole.
PLAN = "plan.json"


class Pinned(Protocol):
    """A plan that runs are pinned to."""

    @property
    def name(self) -> str:
        """What it is the plan of."""
        ...

    @property
    def text(self) -> str:
        """What it says."""
        ...

    @property
    def digest(self) -> str:
        """The digest of its text."""
        ...


async def pin(plans: Plans, tenant: str, plan: Pinned, context: str) -> None:
    """Keep a tenant's plan with what it says of context."""
    await plans.keep(tenant, plan.digest, StoredPlan(plan.name, plan.text, context))


async def plan_of(plans: Plans, started: RunStarted) -> StoredPlan | None:
    """The plan that a run is pinned to, if it is pinned to one that was kept."""
    return await plans.find(started.tenant, started.code.get(PLAN, started.definition))
