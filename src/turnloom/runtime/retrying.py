"""Retry a run that ended."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from turnloom.agents.spec import RunState
from turnloom.errors import PlanChanged, UsageError
from turnloom.guards.spec import RESOURCES, RunBudget
from turnloom.kernel.arguments import MOST, as_count, as_name, as_one_of
from turnloom.kernel.durations import later
from turnloom.log.events import ENDS, Pin, RunPaused, RunRetried, RunStarted
from turnloom.log.logic import ranges, standing, started_of
from turnloom.log.ports import Clock, EventLog
from turnloom.log.service import branching
from turnloom.log.spec import Event, RunKey
from turnloom.runs.form import Form
from turnloom.runs.retries import RETRY, Redo
from turnloom.runs.undriven import Undriven
from turnloom.runtime.journal import Appends, Journal
from turnloom.runtime.logic import evolve, fresh
from turnloom.runtime.ports import Definitions
from turnloom.runtime.spec import LoadedWorkflow, RetryRequest
from turnloom.variables.events import TimerSet


class Terms(NamedTuple):
    """What the retries of a run changed: its definition, and limits of its budget."""

    pin: Pin | None
    budget: Mapping[str, float]


def terms_of(events: Sequence[Event], state: RunState | None) -> Terms:
    """What retries changed, up to a snapshot and after it."""
    terms = Terms(state.pin, state.budget) if state else Terms(None, {})
    for event in events:
        if isinstance(event.data, RunRetried):
            fact = event.data
            terms = Terms(fact.pin or terms.pin, {**terms.budget, **fact.budget})
    return terms


def with_budget(loaded: LoadedWorkflow, raised: Mapping[str, float]) -> LoadedWorkflow:
    """A workflow with raised limits of its budget.

    Raises:
        UsageError: it has no budget, or not these limits.
    """
    if not raised:
        return loaded
    if loaded.guards.budget is None:
        raise UsageError(f"{loaded.workflow.name!r} has no budget that could be raised.")
    budget = raised_budget(loaded.guards.budget, raised)
    return replace(loaded, guards=loaded.guards.model_copy(update={"budget": budget}))


def raised_budget(budget: RunBudget, raised: Mapping[str, float]) -> RunBudget:
    """A budget with higher limits.

    Raises:
        UsageError: they are no limits, or not higher.
    """
    now = budget.model_dump()
    for name, limit in raised.items():
        if now[name] is None or limit <= now[name]:
            has = "is not limited" if now[name] is None else f"has the limit {now[name]:g}"
            raise UsageError(f"The budget cannot be raised to {name}={limit:g}: {name} {has}.")
    limits = {name: int(limit) if limit.is_integer() else limit for name, limit in raised.items()}
    try:
        return RunBudget.model_validate({**now, **limits})
    except ValueError:
        said = ", ".join(f"{name}={limit:g}" for name, limit in raised.items())
        raise UsageError(f"The budget cannot be {said}. Count in whole numbers.") from None


def undriven(log: Appends, clock: Clock, run: RunKey, fence: int) -> Journal:
    """The journal of a run of which nothing is decided here: its facts are masked already."""
    form = Undriven("")
    bare = LoadedWorkflow(form, {}, "", "", files={}, code={})
    journal = Journal(log, clock, bare, fresh(run, form), secrets=None)
    journal.fence = fence
    return journal


async def retry(
    log: EventLog, definitions: Definitions, journal: Journal, asked: RetryRequest
) -> None:
    """Record in the journal of a run that it is retried, and what of it no longer counts.

    Raises:
        UsageError: it has not ended, or there is nothing to do again.
    """
    run = journal.run
    stored = await log.read(run)
    if not _is_over(stored[-1]):
        raise UsageError(f"Run {run.id!r} has not ended. Resume it: `turnloom resume {run.id}`.")
    started, events = started_of(stored), standing(stored)
    before, asked, changed = await _definitions(definitions, started, asked)
    with_budget(asked.loaded or before, asked.budget)
    end = None if asked.at is None else await _batch_end(log, run, asked.at, events)
    redo = _redo(before, run, events, asked.since, at=end)
    if asked.loaded is not None:
        redo = fitted(before.workflow, asked.loaded.workflow, events, redo)
    fact = RunRetried(
        asked.by,
        ranges(redo.voided),
        _since(asked.since, end),
        tuple(sorted({*changed, *_changed(started, asked.loaded)})) or before.changed_code,
        pin=_pin(asked.loaded),
        budget=asked.budget,
    )
    journal.catch_up(stored)
    journal.record(f"retried@{stored[-1].seq}", fact, asked.by)
    record_redo(journal, redo, stored[-1].seq)
    await journal.commit()


async def _definitions(
    definitions: Definitions, started: RunStarted, asked: RetryRequest
) -> tuple[LoadedWorkflow, RetryRequest, tuple[str, ...]]:
    """The definition of a run so far, its request with the present one if its plan has changed, and
    what differs.

    Raises:
        PlanChanged: its plan has changed, and there is no other.
    """
    try:
        return await definitions.restore(started), asked, ()
    except PlanChanged:
        renewed = await definitions.renew(started)
        if renewed is None:
            raise
    return renewed.before, replace(asked, loaded=renewed.present), renewed.changed


def fitted(before: Form, present: Form, events: Sequence[Event], redo: Redo) -> Redo:
    """What is done again with another definition.

    Raises:
        PlanChanged: something that counts has no place in it.
    """
    counting = [event for event in events if event.seq not in redo.voided]
    return redo._replace(voided=redo.voided | present.misplaced(before, counting))


def record_redo(journal: Journal, redo: Redo, end: int) -> None:
    """Record what follows a retry of a run that had ended at a position."""
    for id, each in redo.facts:
        journal.record(id, each, RETRY)
    for timer, seconds in redo.timers.items():
        due = later(journal.time.now(), seconds)
        journal.record(f"{timer}/set@{end}", TimerSet(timer, due), RETRY)


def as_request(
    since: object, at: object, budget: Mapping[str, float] | None, by: str
) -> RetryRequest:
    """A request as a program gives it.

    Raises:
        UsageError: it is none.
    """
    if since is not None and at is not None:
        raise UsageError("`since` and `at` exclude each other. Give one.")
    if since is not None and not isinstance(since, str):
        since = as_count(since, "`since`")
    position = None if at is None else as_count(at, "`at`")
    limits = _limits(budget or {})
    return RetryRequest(as_name(by, "`by`"), since, position, budget=limits)


def _limits(given: Mapping[str, float]) -> dict[str, float]:
    """Limits as a program gives them.

    Raises:
        UsageError: there is no such resource, or a limit is no number above 0.
    """
    for name, limit in as_one_of(given, Mapping, "`budget`").items():
        if name not in RESOURCES:
            raise UsageError(f"A budget has no {name!r}. It has {', '.join(RESOURCES)}.")
        if not _is_limit(limit):
            raise UsageError(f"`budget` of {name!r} is {limit!r}. Give a number above 0.")
    return {name: float(limit) for name, limit in given.items()}


def _is_limit(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MOST


async def _batch_end(log: EventLog, run: RunKey, at: int, events: Sequence[Event]) -> int:
    """The end of the batch that holds a position.

    Raises:
        UsageError: nothing came after it.
    """
    end = await branching(log, "A retry at an event").batch_end(run, at)
    if end == events[-1].seq:
        raise UsageError(f"Nothing of run {run.id!r} came after event {at}.")
    return end


def _redo(
    loaded: LoadedWorkflow,
    run: RunKey,
    events: Sequence[Event],
    since: int | str | None,
    *,
    at: int | None,
) -> Redo:
    """What is done again.

    Raises:
        UsageError: there is nothing of that kind.
    """
    redo = loaded.workflow.redo(events, stop_of(loaded, run, events), since, at)
    if redo is not None:
        return redo
    if since is None:
        raise UsageError(
            f"Nothing failed in run {run.id!r}. To do a part of it again, name a turn, a step or "
            "an event: `--from 3`, `--from STEP` or `--at SEQ`."
        )
    what = f"turn {since}" if isinstance(since, int) else f"step {since!r}"
    raise UsageError(f"Run {run.id!r} took no {what}. See `turnloom explain {run.id}`.")


def stop_of(loaded: LoadedWorkflow, run: RunKey, events: Sequence[Event]) -> Event | None:
    """The event that stopped a run: the first one after which it had failed or was to be
    cancelled."""
    form: Form = loaded.workflow
    state = fresh(run, form, loaded.guards)
    for event in events:
        evolve(form, state, event)
        if state.failure is not None or state.cancel is not None:
            return event
    return None


def _is_over(last: Event) -> bool:
    """Whether a run ended with this event, or rests for good: a board keeps failed turns."""
    rest = last.data
    rests = isinstance(rest, RunPaused) and not rest.waiting_for and rest.due is None
    return last.kind in ENDS or rests


def _since(since: int | str | None, at: int | None) -> str:
    """Where a retry begins: after an event, with a turn or with a step."""
    if at is not None:
        return f"event {at}"
    if since is None:
        return ""
    return f"turn {since}" if isinstance(since, int) else f"step {since}"


def _pin(loaded: LoadedWorkflow | None) -> Pin | None:
    if loaded is None:
        return None
    return Pin(
        loaded.workflow.version,
        loaded.definition,
        loaded.root,
        files=loaded.files,
        code=loaded.code,
        set_aside=loaded.set_aside,
    )


def _changed(started: RunStarted, loaded: LoadedWorkflow | None) -> tuple[str, ...]:
    """The files of a definition, and of its code, that differ from those of the run."""
    if loaded is None:
        return ()
    pairs = ((started.files, loaded.files), (started.code, loaded.code))
    names = {name for old, new in pairs for name in (*old, *new) if old.get(name) != new.get(name)}
    return tuple(sorted(names))
