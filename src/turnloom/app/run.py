"""Handles of runs."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Generic, cast

from typing_extensions import TypeVar

from turnloom.app.access import PROGRAM, Access
from turnloom.app.arguments import as_path
from turnloom.kernel.arguments import as_count, as_function, as_name, as_string
from turnloom.kernel.markup import plain, visible
from turnloom.log.spec import LOCAL

if TYPE_CHECKING:
    from pydantic import BaseModel

    from turnloom.agents.spec import Question
    from turnloom.events import RunEnd, RunEvent, StepCompensated
    from turnloom.flow.spec.progress import Outcome
    from turnloom.kernel.values import Json
    from turnloom.log.spec import RunKey
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.spec import Delivery, Delta, Holder, RunSummary, StoredPlan


S_co = TypeVar("S_co", bound="BaseModel", default="BaseModel", covariant=True)


class Run(Generic[S_co]):
    """One execution of a workflow: `id` names it among the runs of its tenant, `app_id`. `S_co` is
    the state of its flow, if it runs one."""

    def __init__(
        self,
        key: "RunKey",
        runs: "Runs",
        serve: "Callable[[], Runs]",
        access: Access = PROGRAM,
    ) -> None:
        self.id = key.id
        self.app_id = key.tenant
        self._key = key
        self._runs = runs
        self._serve = serve
        self._access = access

    def __repr__(self) -> str:
        return f"<Run {visible(self.id)}>"

    def _repr_html_(self) -> str:
        return f"<code>Run {plain(self.id)}</code>"

    def events(self, after: int = 0) -> "AsyncGenerator[RunEvent]":
        """Its events after a position, live, up to its end."""
        self._access.need("explain")
        after = as_count(after, "`after`", 0)
        return cast("AsyncGenerator[RunEvent]", self._runs.events(self._key, after))

    async def summary(self) -> "RunSummary":
        """The run in one line.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.runtime.runs import summary_of

        self._access.need("runs:read")
        await self._access.own(self._runs.log, self._key)
        return await summary_of(self._runs.log, self._key)

    async def question(self, *, user_id: str | None = None) -> "Question | None":
        """The oldest open question, if there is one: the first of `questions`."""
        return next(iter(await self.questions(user_id=user_id)), None)

    async def questions(self, *, user_id: str | None = None) -> "list[Question]":
        """Its open questions, the oldest first.

        `user_id` is the person who asks for them: the run's user sees all questions, others see
        those addressed to them.

        Raises:
            NotYours: the person is neither the run's user nor an addressee.
        """
        self._access.need("runs:read")
        return await self._runs.questions.open(self._key, self._access.person(user_id))

    async def answer(
        self, question: str | None, value: "Json", *, user_id: str | None = None
    ) -> "Delivery":
        """Answer one of its questions; returns the delivery status of the answer. `None` stands for
        the only open question that this person may answer, or else for the last answered one.

        `user_id` is the person who answers: by default the run's user. Only the addressee of a
        question, its `to`, may answer it.

        Raises:
            NotYours: the question is addressed to another person.
            QuestionExpired: the answer is late.
            RunBusy: the process that drives it does not take the answer in.
            UsageError: the question is unknown or ambiguous, or the answer is invalid.
        """
        self._access.need("runs:write")
        asked = None if question is None else as_string(question, "`question`")
        by = self._access.person(user_id)
        return await self._runs.questions.answer(self._key, asked, value, user=by)

    def listening(self, listener: "Callable[[Delta], None]") -> "AbstractContextManager[None]":
        """Call `listener` with the text deltas of answers made in this process, while the context
        is open."""
        self._access.need("runs:read")
        hear = as_function(listener, "`listener`")
        return self._runs.following.listen(self._key, hear)

    async def cancel(self, *, by: str | None = None, reason: str = "") -> bool:
        """Cancel it; returns whether it was open.

        Raises:
            RunBusy: the process that drives it does not respond.
            UsageError: no process drives it, and another program declares its board.
        """
        self._access.need("runs:write")
        await self._access.own(self._runs.log, self._key)
        by, reason = self._person(by), as_string(reason, "`reason`")
        return await self._runs.cancel(self._key, by=by, reason=reason)

    async def retry(
        self,
        since: int | str | None = None,
        *,
        at: int | None = None,
        folder: "str | PathLike[str] | None" = None,
        budget: "Mapping[str, float] | None" = None,
        tools: str | None = None,
        by: str | None = None,
    ) -> None:
        """Make it continue after it failed, was cancelled, or finished: from what failed. What
        completed stays on record, and is not done again.

        `since` does everything again from a turn (its number) or a step (its name), `at` everything
        after the events that were stored together with event `at`. `folder` is a changed definition
        to continue with; `budget` raises limits, as in `{"tokens": 50_000}`. `tools` says what
        becomes of calls that are made again, as in `fork`: `ask` after `since` or `at`, otherwise
        `live`.

        Raises:
            DefinitionError: the changed definition does not pass its check.
            RunBusy: another process drives it.
            UsageError: it has not ended, or there is nothing of that kind to do again.
        """
        from turnloom.runtime.retrying import as_request

        self._access.need("runs:write", "explain")
        given = as_request(since, at, budget, self._person(by), tools=tools)
        source = None if folder is None else as_path(folder, "`folder`")
        await self._serve().retry(self._key, given, source)

    async def fork(
        self,
        at: int,
        *,
        answer: "Json" = None,
        values: "Mapping[str, Json] | None" = None,
        folder: "str | PathLike[str] | None" = None,
        tools: str = "ask",
        by: str | None = None,
    ) -> "Run[S_co]":
        """Begin another run with its events up to event `at`, and those stored together with it;
        the run itself is not touched.

        `answer` is the answer to the question that is open there, `values` are variables to set,
        and `folder` is a changed definition. Models are asked anew. Tools, hooks and steps: a call
        that equals one that this run made after event `at` has its recorded result; another one is
        put to the run's user (`tools="ask"`), refused (`recorded`), or made (`live`: all are made).
        `by` is the person who forks and answers, by default the run's user.

        Raises:
            DefinitionError: the changed definition does not pass its check.
            UnknownRun: there is no such run.
            UsageError: it cannot be forked there, or not so.
        """
        from turnloom.runtime.forking import as_fork_request

        self._access.need("runs:write", "explain")
        asked = as_fork_request(at, answer, values, tools=tools, by=self._access.person(by, "`by`"))
        source = None if folder is None else as_path(folder, "`folder`")
        runs = self._serve()
        forked = await runs.forks.fork(self._key, asked, source)
        return Run(forked, runs, self._serve, self._access)

    async def holder(self) -> "Holder | None":
        """The process that drives it, and whether that process responds; None if no process does,
        or if there is no such run."""
        self._access.need("explain")
        return await self._runs.claims.held(self._key)

    async def not_undone(self) -> "list[StepCompensated]":
        """The steps of a flow that could not be compensated when the run was stopped, once it
        ended: their compensation failed, or the changed flow no longer has it.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.runtime.outcomes import not_undone

        self._access.need("explain")
        return await not_undone(self._runs, self._key)

    async def plan(self) -> "StoredPlan | None":
        """The plan that a run of a board or a flow is pinned to; None for the run of a folder.

        Raises:
            UnknownRun: there is no such run.
        """
        self._access.need("explain")
        return await self._runs.plan(self._key)

    async def outcome(self) -> "Outcome[S_co]":
        """The outcome of a run of a flow, once it ends or waits for a person.

        Raises:
            UsageError: it is not a run of a flow.
        """
        from turnloom.runtime.outcomes import outcome

        self._access.need("explain")
        return await outcome(self._runs, self._key)

    async def finished(self) -> "RunEnd":
        """The event that ended it, once it is stored."""
        return cast("RunEnd", [event async for event in self.events()][-1])

    def _person(self, by: str | None) -> str:
        """The person who acts."""
        who = self._access.person(by, "`by`")
        return as_name(LOCAL if who is None else who, "`by`")
