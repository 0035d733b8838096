"""Fork runs at every event, with the answers of the original, and compare how they end."""

import asyncio
from typing import Any

from tests.support.world import Kill, Script, World, read_logs
from turnloom import Event, Loom, Run
from turnloom.agents.events import QuestionAnswered
from turnloom.log.events import ENDS
from turnloom.log.logic import standing
from turnloom.log.spec import RunKey

# Seconds for one fork.
PATIENCE = 60.0


class ForkingWorld(World):
    """A world in which every run that ended is forked at every event, by the program that drove
    it."""

    async def live(self, script: Script, kill: Kill | None = None, **settings: Any) -> bool:
        async def forking(app: Loom) -> None:
            await script(app)
            await check_forks(app, self.store, self.clock)

        return await super().live(script if kill else forking, kill, **settings)


async def check_forks(app: Loom, store: Any, clock: Any) -> None:
    """Fork every run that ended, at every event; each fork ends as its original did, and leaves it
    as it was."""
    logs, checked = await read_logs(store), set[str]()
    for events in logs.values():
        if events[-1].kind in ENDS and events[0].run not in checked:
            checked.add(events[0].run)
            for end in await batch_ends(store, events):
                await check_fork(app, store, clock, events, end)
    assert {run: log for run, log in (await read_logs(store)).items() if run in logs} == logs


async def batch_ends(store: Any, events: list[Event]) -> list[int]:
    """The positions after which a run can be cut."""
    run = RunKey(events[0].data.tenant, events[0].run)
    ends = [await store.log.batch_end(run, event.seq) for event in events]
    return sorted({end for end in ends if end < events[-1].seq})


async def check_fork(app: Loom, store: Any, clock: Any, events: list[Event], at: int) -> None:
    """Fork a run; the fork ends as the run did."""
    tenant = events[0].data.tenant
    run = app.handle(events[0].run, app_id=tenant)
    fork = await run.fork(at, tools="recorded")
    async with asyncio.timeout(PATIENCE):
        end = await ended(app, clock, fork, answers_in(events))
    assert outcome(end) == outcome(events[-1]), f"forked at {at}"
    own = await store.log.read(RunKey(tenant, fork.id))
    assert [*own[:at]] == events[:at]
    assert values(own) == values(events), f"forked at {at}"


async def ended(app: Loom, clock: Any, fork: Run, answers: dict[str, Any]) -> Event:
    """Answer the questions of a fork as those of its original were; its end."""
    async for event in fork.events():
        if event.kind == "run.paused":
            for question in await fork.questions():
                if question.id in answers:
                    by, value = answers[question.id]
                    await fork.answer(question.id, value, user_id=by)
            if event.data.due is not None and clock.time < event.data.due:
                clock.time = event.data.due
                await app.resume(fork.id, app_id=fork.app_id)
        elif event.kind in ENDS:
            return event
    raise AssertionError("it did not end")


def answers_in(events: list[Event]) -> dict[str, Any]:
    """The answers of a run: by whom, and what."""
    facts = (event.data for event in events)
    answers = (each for each in facts if isinstance(each, QuestionAnswered))
    return {each.question: (each.by, each.value) for each in answers}


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
