"""Plans of boards and flows, kept so that runs can be compared with what they are pinned to."""

from typing import Protocol

from turnloom.log.events import RunStarted
from turnloom.runtime.ports import Plans
from turnloom.runtime.spec import StoredPlan

# The key, in the code digests of a run pinned to part of a plan, of the whole plan's digest.
PLAN = "plan.json"


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


async def pin(plans: Plans, tenant: str, plan: PinnedPlan, context: str) -> None:
    """Keep a tenant's plan, with a description of its context."""
    await plans.keep(tenant, plan.digest, StoredPlan(plan.name, plan.text, context))


async def plan_of(plans: Plans, started: RunStarted) -> StoredPlan | None:
    """The plan that a run is pinned to, if there is one and it was kept."""
    return await plans.find(started.tenant, started.code.get(PLAN, started.definition))
