"""How runs of flows begin."""

from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel

from turnloom.flow.events import StateGiven
from turnloom.flow.logic.flowing import Flowing
from turnloom.flow.logic.folding import TIMEOUT
from turnloom.flow.logic.plans import describe_plan
from turnloom.kernel.durations import later
from turnloom.log.spec import Fact
from turnloom.runtime.ports import Plans
from turnloom.runtime.service.pinning import pin
from turnloom.runtime.spec import Loaded
from turnloom.variables.events import TimerSet


class FlowGiven(NamedTuple):
    """A flow, and the state that a run of it is to begin with."""

    loaded: Loaded
    state: BaseModel


def first_facts(given: FlowGiven, user: str, now: datetime) -> list[tuple[str, Fact, str]]:
    """What a run of a flow begins with.

    Raises:
        InvalidUpdate: it is no state of the flow.
    """
    workflow = _flowing(given.loaded)
    facts: list[tuple[str, Fact, str]] = [
        ("state", StateGiven(workflow.states.dump(given.state)), user)
    ]
    if workflow.plan.timeout is not None:
        due = later(now, workflow.plan.timeout)
        facts.append(("timeout", TimerSet(TIMEOUT, due), "clock"))
    return facts


async def pin_flow(plans: Plans, tenant: str, loaded: Loaded) -> None:
    """Keep a tenant's plan of a flow."""
    plan = _flowing(loaded).plan
    await pin(plans, tenant, plan, describe_plan(plan))


def _flowing(loaded: Loaded) -> Flowing:
    assert isinstance(loaded.workflow, Flowing)
    return loaded.workflow
