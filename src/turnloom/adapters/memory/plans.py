"""Plans, in this process's memory."""

from collections.abc import Callable

from turnloom.runtime.spec import StoredPlan


class MemoryPlans:
    """Plans by tenant and digest."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._plans: dict[tuple[str, str], StoredPlan] = {}

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Keep a plan; one that is there already stays as it is."""
        self._check_open()
        self._plans.setdefault((tenant, digest), plan)

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan of this digest, if it was kept."""
        self._check_open()
        return self._plans.get((tenant, digest))
