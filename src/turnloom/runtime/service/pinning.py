"""The plans of boards and flows, kept where runs can be compared with what they are pinned to."""

from contextlib import suppress
from datetime import datetime
from typing import Protocol

from turnloom.errors import Conflict
from turnloom.log.events import RunStarted
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event

# What the text of a plan is kept as, what it says of context for people, which only the program
# that declares it can tell, and the form of what holds both, which is no run.
PLAN = "plan.json"
CONTEXT = "context.txt"
PLAN_FORM = "plan"


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


async def pin(log: EventLog, plan: Pinned, context: str, now: datetime) -> None:
    """Put a plan on record, if it is not, with what it says of context."""
    run = _place(plan.name, plan.digest)
    if await log.ends(run=run):
        return
    files = {PLAN: plan.text, CONTEXT: context}
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
