"""Handles of runs."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Generic, Unpack, cast

from typing_extensions import TypeVar

from turnloom.app.access import PROGRAM, Access
from turnloom.app.arguments import as_path
from turnloom.app.feedback import Opinion, author, give_feedback
from turnloom.errors import NotYours, TurnloomError, UnknownRun, UsageError
from turnloom.kernel.arguments import as_count, as_function, as_name, as_string, as_text
from turnloom.kernel.markup import plain, visible
from turnloom.log.spec import LOCAL

if TYPE_CHECKING:
    from pydantic import BaseModel

    from turnloom.agents.spec import Question
    from turnloom.events import RunEnd, RunEvent, StepCompensated
    from turnloom.feedback.spec import Feedback
    from turnloom.flow.spec.progress import Outcome
    from turnloom.kernel.values import Json
    from turnloom.log.spec import RunKey
    from turnloom.runs.chat import ChatEvent
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.spec import (
        Delivery,
        Delta,
        Holder,
        IfBusy,
        RunSummary,
        SentMessage,
        StoredPlan,
    )


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

    async def chat(self, after: int = 0, *, live: bool = True) -> "AsyncGenerator[ChatEvent]":
        """Its chat after a position, live, up to its end, or unless `live` what is stored: what a
        user sees of its events. For the program and for developers, that is what the run's user
        sees.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.runtime.chat import chat

        self._access.need("runs:read")
        after = as_count(after, "`after`", 0)
        await self._access.own(self._runs.log, self._key)
        who = None if self._access.user is None else self._access.answerer(None)
        try:
            async with aclosing(chat(self._runs, self._key, who, after, live=live)) as shown:
                async for each in shown:
                    yield each
        except TurnloomError as error:
            if who is None:
                raise
            # Why a run cannot be driven is for developers, who find it in the program's log.
            raise UsageError(f"Run {self.id!r} cannot continue now ({error.code}).") from None

    async def summary(self) -> "RunSummary":
        """Its workflow, its status and its times; why it ended only for those who may explain it.

        Raises:
            UnknownRun: there is no such run.
        """
        self._access.need("runs:read")
        await self._access.own(self._runs.log, self._key)
        return await self._runs.summaries.one(self._key, explains=self._access.explains)

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
        by, sees_all = self._access.answerer(user_id), self._access.user is None
        with self._hidden_from_users():
            return await self._runs.questions.open(self._key, by, all_of_own=sees_all)

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
        asked = None if question is None else as_string(question, "`question`")
        by = self._access.answerer(user_id)
        with self._hidden_from_users():
            async with self._access.noting("run.answered", self.id, "runs:write"):
                return await self._runs.questions.answer(self._key, asked, value, by)

    async def answered_by(self, question: str) -> str:
        """The person whose answer to a question counts; empty without one, and if the question is
        not put to the principal.

        Raises:
            NotYours: no question of it is put to the principal.
            UnknownRun: there is no such run.
        """
        self._access.need("runs:read")
        asked, by = as_name(question, "`question`"), self._access.answerer(None)
        with self._hidden_from_users():
            return await self._runs.questions.answered_by(self._key, asked, by)

    async def send(
        self,
        message: str,
        *,
        if_busy: "IfBusy" = "enqueue",
        id: str | None = None,
        user_id: str | None = None,
    ) -> "SentMessage":
        """Send a message of its user to a conversation, at any time; returns what became of it, and
        the run that has it. The conversation is driven in this process, unless another one drives
        it.

        If the run waits for the user's input, the message is that input. In an open turn, it is
        taken in when the turn ends (`enqueue`), refused (`reject`), or ends the turn (`interrupt`);
        what the turn completed stays on record. If the conversation has ended, the message begins a
        run that continues it, with the history so far. Sending the same `id` again changes nothing.
        `user_id` is the person who sends it, by default the run's user.

        Raises:
            MessageRejected: a turn is open, with `reject`.
            NotYours: the run belongs to another person.
            RunBusy: the process that drives it does not take the message in.
            UsageError: it is not a conversation.
        """
        from turnloom.runtime.spec import Say, as_if_busy
        from turnloom.runtime.summaries import summary_of

        self._access.need("runs:write")
        await self._access.own(self._runs.log, self._key)
        policy, text = as_if_busy(if_busy), as_text(message, "The message")
        runs = self._serve()
        by = self._access.person(user_id) or (await summary_of(runs.log, self._key)).user
        name = runs.messages.new_id() if id is None else as_name(id, "`id`")
        return await runs.messages.send(self._key, name, Say(text, by, policy))

    def listening(self, listener: "Callable[[Delta], None]") -> "AbstractContextManager[None]":
        """Call `listener` with the text deltas of answers made in this process, while the context
        is open."""
        self._access.need("runs:read")
        hear = as_function(listener, "`listener`")
        return self._runs.following.listen(self._key, hear, self._access.user)

    async def cancel(self, *, by: str | None = None, reason: str = "") -> bool:
        """Cancel it; returns whether it was open.

        Raises:
            RunBusy: the process that drives it does not respond.
            UsageError: no process drives it, and another program declares its board.
        """
        by, reason = self._person(by), as_string(reason, "`reason`")
        async with self._access.noting("run.cancelled", self.id, "runs:write"):
            await self._access.own(self._runs.log, self._key)
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

        given = as_request(since, at, budget, self._person(by), tools=tools)
        source = None if folder is None else as_path(folder, "`folder`")
        async with self._access.noting("run.retried", self.id, "runs:write", "explain"):
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

        asked = as_fork_request(at, answer, values, tools=tools, by=self._access.person(by, "`by`"))
        source = None if folder is None else as_path(folder, "`folder`")
        runs = self._serve()
        async with self._access.noting("run.forked", self.id, "runs:write", "explain"):
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

    async def feedback(
        self, name: str, *, user_id: str | None = None, **opinion: Unpack[Opinion]
    ) -> "Feedback":
        """Say what a person thinks of it, or of one of its turns: a score or a label, under a name.
        A second one of the same person, name and turn replaces the first.

        Raises:
            UnknownRun: there is no such run.
            UsageError: a value is invalid, the run has no such turn, or the store has no
                `feedback`.
        """
        await self._access.own(self._runs.log, self._key)
        by = (author(self._access, user_id), name)
        return await give_feedback(
            self._runs.feedback, self._key, self._access, by=by, opinion=opinion
        )

    @contextmanager
    def _hidden_from_users(self) -> Generator[None]:
        """Refuse what is not put to a user as if it did not exist."""
        try:
            yield
        except NotYours:
            if self._access.user is None:
                raise
            raise UnknownRun(self.id) from None

    def _person(self, by: str | None) -> str:
        """The person who acts."""
        who = self._access.person(by, "`by`")
        return as_name(LOCAL if who is None else who, "`by`")
