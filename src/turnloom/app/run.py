"""Runs as handles."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Generic, cast

from typing_extensions import TypeVar

from turnloom.kernel.arguments import as_count, as_function, as_name, as_string
from turnloom.kernel.markup import plain, visible

if TYPE_CHECKING:
    from pydantic import BaseModel

    from turnloom.agents.spec import Question
    from turnloom.events import RunEnd, RunEvent, StepCompensated
    from turnloom.flow.spec.progress import Outcome
    from turnloom.kernel.values import Json
    from turnloom.log.spec import RunKey
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.spec import Delivery, Delta, Holder, StoredPlan


S_co = TypeVar("S_co", bound="BaseModel", default="BaseModel", covariant=True)


class Run(Generic[S_co]):
    """One execution of a workflow: `id` names it among the runs of its tenant, `app_id`. `S_co` is
    the state of its flow, if it runs one."""

    def __init__(self, key: "RunKey", runs: "Runs") -> None:
        self.id = key.id
        self.app_id = key.tenant
        self._key = key
        self._runs = runs

    def __repr__(self) -> str:
        return f"<Run {visible(self.id)}>"

    def _repr_html_(self) -> str:
        return f"<code>Run {plain(self.id)}</code>"

    def events(self, after: int = 0) -> "AsyncGenerator[RunEvent]":
        """Its events from a position on, live, up to its end."""
        after = as_count(after, "`after`", 0)
        return cast("AsyncGenerator[RunEvent]", self._runs.events(self._key, after))

    async def question(self, *, user_id: str | None = None) -> "Question | None":
        """The oldest question that it asks and waits for, if it does: the first of `questions`."""
        return next(iter(await self.questions(user_id=user_id)), None)

    async def questions(self, *, user_id: str | None = None) -> "list[Question]":
        """The questions that it asks and waits for, the oldest first.

        `user_id` says who wants to know, if people are to be told apart: the run's user is told of
        all questions, other people of those that are asked of them.

        Raises:
            NotYours: it is neither the run's user nor a person who is asked.
        """
        return await self._runs.questions.open(self._key, _user(user_id))

    async def answer(
        self, question: str | None, value: "Json", *, user_id: str | None = None
    ) -> "Delivery":
        """Answer one of its questions, and say what became of it. `None` stands for the only open
        question that this person can answer, or else for the last one that was answered.

        `user_id` says who answers: the run's user, if nothing is said. Only the person who is asked
        can answer, `to` of the question.

        Raises:
            NotYours: another person is asked.
            QuestionExpired: it comes too late.
            RunBusy: another process drives it, and does not take the answer in.
            UsageError: there is no such question, or more than one, or this is no answer to it.
        """
        asked = None if question is None else as_string(question, "`question`")
        return await self._runs.questions.answer(self._key, asked, value, user=_user(user_id))

    def listening(self, listener: "Callable[[Delta], None]") -> "AbstractContextManager[None]":
        """Let a listener hear answers while they are made in this process, piece by piece."""
        hear = as_function(listener, "`listener`")
        return self._runs.following.listening(self._key, hear)

    async def cancel(self, *, by: str = "local", reason: str = "") -> bool:
        """End it now; whether it was still going.

        Raises:
            RunBusy: another process drives it, and does not take that in.
            UsageError: nobody drives it, and another program declares its board.
        """
        by, reason = as_name(by, "`by`"), as_string(reason, "`reason`")
        return await self._runs.cancel(self._key, by=by, reason=reason)

    async def holder(self) -> "Holder | None":
        """Which process drives it now, and whether that one responds; nothing if none does, or if
        there is no such run."""
        return await self._runs.claims.held(self._key)

    async def not_undone(self) -> "list[StepCompensated]":
        """The steps of a flow that were to be made up for when the run was stopped, and could not
        be, once it ended: their compensation failed, or a changed flow does not have it any more.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.runtime.outcomes import not_undone

        return await not_undone(self._runs, self._key)

    async def plan(self) -> "StoredPlan | None":
        """The plan that a run of a board or a flow is pinned to; a folder's run has none.

        Raises:
            UnknownRun: there is no such run.
        """
        return await self._runs.plan(self._key)

    async def outcome(self) -> "Outcome[S_co]":
        """What has become of a run of a flow, once it ends or waits for a person.

        Raises:
            UsageError: it is no run of a flow.
        """
        from turnloom.runtime.outcomes import outcome

        return await outcome(self._runs, self._key)

    async def finished(self) -> "RunEnd":
        """The event that ended it, once it is there."""
        return cast("RunEnd", [event async for event in self.events()][-1])


def _user(id: str | None) -> str | None:
    return None if id is None else as_string(id, "`user_id`")
