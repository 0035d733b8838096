"""Fork a run: begin another one with its events up to a point."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import aclosing
from dataclasses import replace
from itertools import count

from turnloom.agents.events import MessageSent
from turnloom.agents.logic.answers import Answerer, answer_id, may_answer, misanswer
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_count, as_name, as_one_of, as_string
from turnloom.kernel.values import Json, preview
from turnloom.log.events import ENDS, RunFailed, RunForked, RunRetried, RunStarted
from turnloom.log.logic import ranges, standing, started_of
from turnloom.log.ports import BranchingLog, Clock, EventLog
from turnloom.log.service import branching, ends_of
from turnloom.log.spec import Event, RunKey
from turnloom.runs.retries import continued_at, redo_after
from turnloom.runtime.drive.driver import Stores, read_secrets
from turnloom.runtime.drive.intake import put_on_record
from turnloom.runtime.journal import Appends, Journal, Tell, telling
from turnloom.runtime.logic import fresh
from turnloom.runtime.ports import Definitions, Entropy
from turnloom.runtime.retrying import (
    LIVE,
    as_policy,
    changed_files,
    pin_of,
    replacement,
    terms_of,
    undriven,
    with_budget,
)
from turnloom.runtime.spec import ForkRequest, Reply, Say, continuation_of
from turnloom.variables.events import ContextChanged
from turnloom.variables.logic.types import is_json, misfit
from turnloom.variables.service import ContextSource

# The writer of the variables that a fork sets.
FORK = "fork"


class Forks:
    """Begins runs with the events of others."""

    def __init__(
        self,
        stores: Stores,
        chance: tuple[Clock, Entropy],
        definitions: Definitions,
        context: ContextSource,
        *,
        observe: Callable[[RunKey, RunStarted], Tell] | None,
        wake: Callable[[RunKey], Awaitable[None]],
    ) -> None:
        self._log = stores.log
        self._clock, self._entropy = chance
        self._definitions = definitions
        self._context = context
        self._observe = observe
        self._wake = wake

    async def fork(self, origin: RunKey, asked: ForkRequest, source: str | None = None) -> RunKey:
        """Begin a run with the events of another one, up to a point, and have it driven; returns
        its key. `source` is the path of a changed definition.

        Raises:
            DefinitionError: the changed definition does not pass its check.
            UnknownRun: there is no such run.
            UsageError: it cannot be forked there, or not so.
        """
        if source is not None:
            loaded = await replacement(self._log, self._definitions, origin, source)
            asked = replace(asked, loaded=loaded)
        run = await self._begin(origin, asked)
        await self._wake(run)
        return run

    async def continue_with(self, origin: RunKey, id: str, say: Say) -> RunKey:
        """Begin the run that continues a conversation that ended, with a message of its user, and
        have it driven; returns its key. The same message again changes nothing.

        Raises:
            Conflict: another message continues it.
            UnknownRun: there is no such run.
            UsageError: the log of this store cannot branch.
        """
        log = branching(self._log, "A message to a conversation that ended")
        stored = await self._log.read(origin)
        started, events, last = started_of(stored), standing(stored), stored[-1]
        run = RunKey(origin.tenant, continuation_of(origin.id))
        loaded = await self._definitions.restore(started)
        secrets = await read_secrets(self._context, run, loaded, started)
        state = fresh(run, loaded.workflow, loaded.guards)
        state.position = last.seq
        state.life = sum(isinstance(event.data, RunRetried) for event in stored)
        observe = self._observe and self._observe(run, started)
        branch = telling(BranchingAppends(log, origin.id, last.seq), observe)
        journal = Journal(branch, self._clock, loaded, state, secrets)
        position = continued_at(events)
        voided = ranges(redo_after(events, position).voided)
        again = RunRetried(say.by, voided, f"event {position}", tools=LIVE)
        journal.record(f"retried@{last.seq}", again, say.by)
        asked = ForkRequest(last.seq, tools=LIVE)
        record_fork(journal, origin, last, asked, by=say.by, continues=True)
        journal.record(id, MessageSent(say.text, say.by, say.if_busy), say.by, is_given=True)
        await journal.commit()
        await self._wake(run)
        return run

    async def _begin(self, origin: RunKey, asked: ForkRequest) -> RunKey:
        """Begin the fork, all or nothing."""
        log = branching(self._log, "A fork")
        cut = await log.batch_end(origin, asked.at)
        last = await last_shared(self._log, origin, cut)
        run = RunKey(origin.tenant, self._entropy.token())
        first, _ = await ends_of(self._log, origin)
        observe = self._observe and self._observe(run, first.data)
        branch = telling(BranchingAppends(log, origin.id, cut), observe)
        if asked.changes_nothing:  # the past need not be read
            journal = undriven(branch, self._clock, run, None, position=cut)
            record_fork(journal, origin, last, asked, by=asked.by or first.data.user)
        else:
            journal = await self._changed(branch, run, origin, last, asked=asked)
        await journal.commit()
        return run

    async def _changed(
        self, branch: Appends, run: RunKey, origin: RunKey, last: Event, *, asked: ForkRequest
    ) -> Journal:
        """The journal of a fork that begins with another definition, other values, or an answer."""
        events = (await self._log.read(origin))[: last.seq]
        started = started_of(events)
        loaded = asked.loaded or await self._definitions.restore(started)
        loaded = with_budget(loaded, terms_of(events, None).budget)
        secrets = await read_secrets(self._context, run, loaded, started)
        state = fresh(run, loaded.workflow, loaded.guards)
        journal = Journal(branch, self._clock, loaded, state, secrets)
        journal.catch_up(events)
        differing = changed_files(started, asked.loaded)
        by = asked.by or state.user
        record_fork(journal, origin, last, asked, by=by, changed=differing)
        if asked.answer is not None:
            record_answer(journal, {event.id for event in events}, asked)
        return journal


class BranchingAppends:
    """The log of a run that begins as a branch: what is stored first branches it."""

    def __init__(self, log: BranchingLog, origin: str, at: int) -> None:
        self._log = log
        self._origin = origin
        self._at = at

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Begin the run with the events of its origin, and these."""
        return await self._log.branch(run, self._origin, self._at, events)


async def last_shared(log: EventLog, run: RunKey, at: int) -> Event:
    """The event after which a run is forked.

    Raises:
        UsageError: it is the end of the run, so that a fork would have nothing to do.
    """
    async with aclosing(log.subscribe(run, at - 1)) as events:
        last = await anext(events)
    if last.kind in ENDS:
        again = f" Or retry what failed: `turnloom retry {run.id}`."
        raise UsageError(
            f"Run {run.id!r} ended with event {at}, so nothing follows it. Fork it at an earlier "
            f"event: `turnloom log {run.id}` lists them."
            + (again if isinstance(last.data, RunFailed) else "")
        )
    return last


def record_fork(
    journal: Journal,
    origin: RunKey,
    last: Event,
    asked: ForkRequest,
    *,
    by: str,
    changed: Sequence[str] = (),
    continues: bool = False,
) -> None:
    """Record that a run is a fork of another one, whose `last` event it shares.

    Raises:
        UsageError: a variable cannot be set so.
    """
    # New in this run: a fork that it comes from was cut at an earlier event.
    mark = f"forked@{last.seq}"
    fact = RunForked(
        origin.id,
        last.seq,
        by,
        last.at,
        tools=asked.tools,
        changed=tuple(changed),
        pin=pin_of(asked.loaded),
        values=tuple(asked.values),
        continues=continues,
    )
    journal.record(mark, fact, by)
    named = ContextChanged("chat_id", journal.run.id, origin.id, FORK)
    journal.record(f"{mark}/chat_id", named, FORK, derives=False)
    for name, value in asked.values.items():
        journal.record(f"{mark}/set:{name}", _change(journal, name, value), FORK)


def _change(journal: Journal, name: str, value: Json) -> ContextChanged:
    """The change of a variable that a fork sets.

    Raises:
        UsageError: there is no such variable, or it does not take this value.
    """
    definitions = journal.workflow.variables.definitions
    definition = definitions.get(name)
    if definition is None:
        known = ", ".join(definitions) or "none"
        raise UsageError(f"Variable {name!r} is not declared. Declared: {known}.")
    if definition.secret:
        raise UsageError(
            f"Variable {name!r} is secret. Its value comes from its source, and is not recorded."
        )
    if problem := misfit(definition, value):
        raise UsageError(f"Variable {problem}.")
    return ContextChanged(name, value, journal.state.values.get(name), FORK)


def record_answer(journal: Journal, taken: Set[str], asked: ForkRequest) -> None:
    """Record the answer to the only open question of a fork; `taken` are the ids of its events.

    Raises:
        UsageError: no question is open, or several are, or the answer is not accepted.
    """
    state, by = journal.state, asked.by or journal.state.user
    found = [
        each for each in state.questions.values() if may_answer(each, Answerer(by), state.user)
    ]
    if len(found) != 1:
        ids = ", ".join(state.questions) or "none"
        raise UsageError(
            f"{len(found) or 'No'} questions are open at event {asked.at} that {by!r} may answer, "
            f"so that it is not clear what is answered. Open: {ids}. Fork without an answer, and "
            "answer the fork."
        )
    (question,) = found
    if why := misanswer(question, asked.answer):
        raise UsageError(f"Question {question.id!r} does not take this answer: {why}.")
    free = (id for n in count() if (id := answer_id(question.id, n)) not in taken)
    put_on_record(journal, next(free), Reply(question.id, asked.answer, by))


def as_fork_request(
    at: object, answer: Json, values: Mapping[str, Json] | None, *, tools: object, by: object
) -> ForkRequest:
    """A request as a program gives it.

    Raises:
        UsageError: it is none.
    """
    if values is not None:
        as_one_of(values, Mapping, "`values`")
    given = {as_string(name, "`values`"): value for name, value in (values or {}).items()}
    for name, value in {**given, "answer": answer}.items():
        if not is_json(value):
            raise UsageError(f"{name!r} is {preview(value)}, which is not JSON. Give data.")
    who = None if by is None else as_name(by, "`by`")
    return ForkRequest(as_count(at, "`at`"), who, answer, given, tools=as_policy(tools))
