"""What guards know: the budget of a run, and the beliefs about agents."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from turnloom.app.access import PROGRAM, Access
from turnloom.app.history import History
from turnloom.errors import TurnloomError
from turnloom.kernel.arguments import as_names, as_string

if TYPE_CHECKING:
    from turnloom.log.spec import Event
    from turnloom.wiring import Parts


class BudgetUse(msgspec.Struct, frozen=True):
    """What a run has spent of each resource, and its limits; a resource without a limit is left
    out. `limits` is None if this program cannot restore the workflow of the run."""

    run: str
    spent: Mapping[str, float]
    limits: Mapping[str, float] | None


class AgentBelief(msgspec.Struct, frozen=True):
    """The evidence on an agent, and the success that is expected of it, from 0 to 1."""

    agent: str
    successes: float
    failures: float
    expected: float


class GuardRecords:
    """The budgets of an app's runs, and its beliefs about agents; `app_id` is the tenant."""

    def __init__(
        self, history: History, parts: "Callable[[], Parts]", access: Access = PROGRAM
    ) -> None:
        self._history = history
        self._parts = parts
        self._access = access

    async def budget(self, run: str, *, app_id: str | None = None) -> BudgetUse:
        """The budget of a run.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.guards.events import BudgetSpent
        from turnloom.guards.spec import Amounts
        from turnloom.log.logic import standing, started_of

        events: Sequence[Event] = await self._history.events(run, app_id=app_id)
        facts = [event.data for event in standing(events)]
        spent = sum((each.amounts for each in facts if isinstance(each, BudgetSpent)), Amounts())
        try:
            loaded = await self._parts().definitions.restore(started_of(events))
        except TurnloomError:
            return BudgetUse(run, msgspec.structs.asdict(spent), None)
        return BudgetUse(
            run, msgspec.structs.asdict(spent), _limits(loaded.guards.budget, [*events])
        )

    async def beliefs(
        self,
        workflow: str,
        agents: Sequence[str],
        category: str = "",
        *,
        app_id: str | None = None,
    ) -> list[AgentBelief]:
        """The beliefs about agents of a workflow, for a category of tasks; agents without outcomes
        are left out."""
        from turnloom.guards.spec import Pool

        tenant = self._access.tenant(app_id, "explain")
        names = sorted(as_names(agents, "`agents`"))
        pool = Pool(tenant, as_string(workflow, "`workflow`"), as_string(category, "`category`"))
        found = await self._parts().beliefs.beliefs(pool, names)
        return [
            AgentBelief(name, each.successes, each.failures, expected=_expected(each))
            for name, each in sorted(found.items())
        ]


def _expected(belief: Any) -> float:
    """The mean of what the evidence suggests, without a prior."""
    return belief.successes / belief.observations if belief.observations else 0.5


def _limits(budget: Any, events: "Sequence[Event]") -> dict[str, float]:
    """The limits of a run: those declared, and those that retries raised."""
    from turnloom.guards.spec import RESOURCES
    from turnloom.log.events import RunRetried

    declared = {name: getattr(budget, name) for name in RESOURCES} if budget is not None else {}
    for event in events:
        if isinstance(event.data, RunRetried):
            declared |= event.data.budget
    return {name: limit for name, limit in declared.items() if limit is not None}
