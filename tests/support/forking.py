"""Fork runs at every event, with the answers of the original, and compare how they end."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.support.world import Kill, Script, World
from turnloom import Event, Loom, Run
from turnloom.agents.events import QuestionAnswered
from turnloom.log.events import ENDS
from turnloom.log.logic import standing
from turnloom.log.spec import RunKey

# Seconds by the clock of the loop, which scenes may move; pytest limits the time of a test.
PATIENCE = 100_000.0

# The kinds of events that a fork before them does not get from the log and the answers of its
# original: they come from outside, or a selection has learnt more since.
OUTSIDE = {"cancel.requested", "retry.asked", "artifact.received", "selection.made"}


@dataclass
class ForkingWorld(World):
    """A world in which every run that ended is forked at every event, by the program that drove
    it."""

    patience: float = PATIENCE
    checked: set[str] = field(default_factory=set[str])
    forks: int = 0

    async def live(self, script: Script, kill: Kill | None = None, **settings: Any) -> bool:
        async def forking(app: Loom) -> None:
            await script(app)
            await check_forks(app, self)

        return await super().live(script if kill else forking, kill, **settings)


async def check_forks(app: Loom, world: ForkingWorld) -> None:
    """Fork every run that ended, at every event; each fork ends as its original did, and leaves it
    as it was."""
    logs = await world.logs()
    for run, events in logs.items():
        if run not in world.checked and events[-1].kind in ENDS:
            world.checked.add(run)
            for end in await cuts(world.store, events):
                await check_fork(app, world, events, end)
                world.forks += 1
    assert {run: log for run, log in (await world.logs()).items() if run in logs} == logs


async def cuts(store: Any, events: list[Event]) -> list[int]:
    """The positions after which a run can be cut, and its end follows from its log and answers."""
    run = RunKey(events[0].data.tenant, events[0].run)
    ends = {await store.log.batch_end(run, event.seq) for event in events}
    given = [event.seq for event in events if _is_outside(event)]
    return sorted(end for end in ends if max(given, default=0) <= end < events[-1].seq)


def _is_outside(event: Event) -> bool:
    """Whether a fork before an event does not get it: objects of a process are not on record."""
    is_object = event.kind == "context.changed" and event.data.ephemeral
    return is_object or event.kind in OUTSIDE or event.id.startswith(("publish/", "close/"))


async def check_fork(app: Loom, world: World, events: list[Event], at: int) -> None:
    """Fork a run; the fork ends as the run did."""
    tenant = events[0].data.tenant
    run = app.handle(events[0].run, app_id=tenant)
    fork = await run.fork(at, tools="recorded")
    end = await ended(app, world, fork, answers_in(events), at)
    assert outcome(end) == outcome(events[-1]), f"forked at {at}"
    own = await world.store.log.read(RunKey(tenant, fork.id))
    assert [*own[:at]] == events[:at]
    assert values(own) == values(events), f"forked at {at}"


class PastAnswer(NamedTuple):
    """An answer of a run: by whom, what, and how many timers had expired before."""

    by: str
    value: Any
    expired: int


async def ended(
    app: Loom, world: World, fork: Run, answers: dict[str, PastAnswer], at: int
) -> Event:
    """Answer the questions of a fork as those of its original were, and let time pass as it did;
    its end."""
    expired = 0
    async for event in fork.events():
        expired += event.kind == "timer.expired"
        if event.kind in ENDS:
            return event
        if event.kind == "run.paused" and event.seq >= at:
            for question in await fork.questions():
                answer = answers.get(question.id)
                if answer is not None and answer.expired <= expired:
                    await fork.answer(question.id, answer.value, user_id=answer.by)
            if event.data.due is not None:
                world.clock.time = max(world.clock.time, event.data.due)
                await app.resume(fork.id, app_id=fork.app_id)
    raise AssertionError("it did not end")


def answers_in(events: list[Event]) -> dict[str, PastAnswer]:
    """The answers of a run, by question."""
    expired, found = 0, dict[str, PastAnswer]()
    for event in events:
        expired += event.kind == "timer.expired"
        if isinstance(event.data, QuestionAnswered):
            found[event.data.question] = PastAnswer(event.data.by, event.data.value, expired)
    return found


def outcome(end: Event) -> tuple[str, Any]:
    """How a run ended."""
    return end.kind, getattr(end.data, "error", getattr(end.data, "reason", ""))


def values(events: Any) -> dict[str, Any]:
    """The last values of the variables and fields that a run changed."""
    found: dict[str, Any] = {}
    for event in standing(events):
        if event.kind == "context.changed" and event.data.name != "chat_id":
            found[event.data.name] = None if event.data.removed else event.data.value
        elif event.kind == "step.completed":
            found |= event.data.update
    return found
