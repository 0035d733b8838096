"""Replay runs of a store."""

from functools import partial

from turnloom.kernel.threads import in_thread, threads
from turnloom.log.events import RunStarted
from turnloom.log.logic import repinned, started_of
from turnloom.log.spec import Event, RunKey
from turnloom.runs.undriven import refuse_undriven
from turnloom.runtime.logic import base_context
from turnloom.runtime.replay.replaying import replay_all
from turnloom.runtime.replay.spec import RecordedLog, ReplayedRun, may_change_definition
from turnloom.runtime.retrying import terms_of, with_budget
from turnloom.runtime.runs import RuntimePorts
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.logic.secrets import secrets_of
from turnloom.variables.service import ContextSource

# The purpose of the threads that replay runs, and their number: each holds a log in memory.
REPLAYING = "replaying"
AT_ONCE = 4


async def replay(world: RuntimePorts, run: RunKey, events: list[Event]) -> ReplayedRun:
    """Decide everything in a run again. Its secrets are read, so that they are masked.

    Raises:
        DefinitionError: its definition does not pass its check any more.
        PlanChanged: this program declares another plan of its board or flow.
        WorkflowGone: this program cannot restore it, or nothing in it was decided here.
    """
    started = started_of(events[:1])
    refuse_undriven(started)
    loaded = await world.definitions.restore(started)
    changes = [event.seq for event in events if may_change_definition(event.data)]
    changed = [await _restored(world, started, events[:seq]) for seq in changes]
    source = ContextSource(world.environment, world.documents)
    base = base_context(run.id, started)
    secrets = secrets_of(await source.secrets(loaded.workflow.variables, base, loaded.database))
    log = RecordedLog(loaded, events, changed, secrets, has_components=bool(world.components))
    (found,) = await in_thread(partial(replay_all, [log]), threads(REPLAYING, AT_ONCE))
    return found


async def _restored(
    world: RuntimePorts, started: RunStarted, events: list[Event]
) -> LoadedWorkflow:
    """The definition of a run after its last retry or fork so far."""
    terms = terms_of(events, None)
    pinned = repinned(started, terms.pin) if terms.pin else started
    return with_budget(await world.definitions.restore(pinned), terms.budget)
