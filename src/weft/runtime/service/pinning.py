"""The plans of boards, kept where runs that are pinned to them can be compared with them."""

from contextlib import suppress
from datetime import datetime

from weft.errors import Conflict
from weft.log.events import RunStarted
from weft.log.ports import EventLog
from weft.log.spec import Event
from weft.reaction.logic.plans import describe_plan
from weft.reaction.spec import Plan

# What the text of a plan is kept as, what it says of context for people, which only the program
# that declares the board can tell, and the form of what holds both, which is no run.
PLAN = "plan.json"
CONTEXT = "context.txt"
PLAN_FORM = "plan"


async def pin(log: EventLog, plan: Plan, now: datetime) -> None:
    """Put a plan on record, if it is not."""
    run = _place(plan.name, plan.digest)
    if await log.ends(run=run):
        return
    files = {PLAN: plan.text, CONTEXT: describe_plan(plan)}
    fact = RunStarted(plan.name, "", plan.digest, "", files, {}, form=PLAN_FORM)
    event = Event("start", run, 1, now, fact.kind, "driver", fact, None, fact.version)
    with suppress(Conflict):  # somebody else has just done so
        await log.append(run, [event], 0)


async def plan_of(log: EventLog, started: RunStarted) -> str:
    """The text of the plan that a run of a board is pinned to."""
    ends = await log.ends(run=plan_place(started))
    return ends[0][0].data.files[PLAN] if ends else "{}"


def plan_place(started: RunStarted) -> str:
    """Where the plan is on record that a run of a board is pinned to."""
    return _place(started.workflow, started.code.get(PLAN, started.definition))


def _place(board: str, digest: str) -> str:
    return f"{board}-plan-{digest[:20]}"
