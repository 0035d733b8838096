"""Feedback on the runs of an app."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

from turnloom.app.access import PROGRAM, Access
from turnloom.errors import UsageError
from turnloom.log.spec import LOCAL

if TYPE_CHECKING:
    from turnloom.feedback.service import StoredFeedback
    from turnloom.feedback.spec import Feedback
    from turnloom.log.spec import RunKey
    from turnloom.wiring import Parts


class Opinion(TypedDict, total=False):
    """What a person thinks of a run: a `score` or a `label`, a `comment`, and the `turn` that it is
    about, if it is not the whole run."""

    score: float | None
    label: str | None
    comment: str
    turn: int | None


class RunFeedback:
    """What people think of runs and turns, kept beside the runs and removed with them."""

    def __init__(self, open: "Callable[[], Parts]", access: Access = PROGRAM) -> None:
        self._open = open
        self._access = access

    async def give(
        self,
        run: str,
        name: str,
        *,
        user_id: str | None = None,
        app_id: str | None = None,
        **opinion: Unpack[Opinion],
    ) -> "Feedback":
        """Say what a person thinks of a run, or of one of its turns: a score or a label, under a
        name. A second one of the same person, name and turn replaces the first.

        Raises:
            Forbidden: the principal lacks the scope `runs:write`.
            UnknownRun: there is no such run.
            UsageError: a value is invalid, the run has no such turn, or the store has no
                `feedback`.
        """
        key, runs = self._access.key(app_id, run), self._open().runs
        await self._access.own(runs.log, key)
        who = author(self._access, user_id)
        return await give_feedback(
            runs.feedback, key, self._access, by=(who, name), opinion=opinion
        )

    async def list(self, run: str, *, app_id: str | None = None) -> "list[Feedback]":
        """The feedback on a run, the oldest first. A principal with the role `user` sees their own.

        Raises:
            Forbidden: the principal lacks the scope `runs:read`.
            UnknownRun: there is no such run.
        """
        key, runs = self._access.key(app_id, run, "runs:read"), self._open().runs
        await self._access.own(runs.log, key)
        found = await runs.feedback.of_run(key)
        own = self._access.user
        return [each for each in found if own in (None, each.who)]


def author(access: Access, user_id: str | None) -> str:
    """The person who gives feedback: the given one, the principal, or the program's default."""
    who = access.person(user_id)
    return LOCAL if who is None else who


async def give_feedback(
    port: "StoredFeedback", run: "RunKey", access: Access, *, by: tuple[str, str], opinion: Opinion
) -> "Feedback":
    """Check and keep feedback of a person under a name."""
    from turnloom.feedback.logic import as_feedback

    for key in opinion:
        if key not in Opinion.__annotations__:
            known = ", ".join(Opinion.__annotations__)
            raise UsageError(f"Unknown argument {key!r} of feedback. Known: {known}.")
    who, name = by
    given = as_feedback(
        run.id,
        opinion.get("turn"),
        name,
        score=opinion.get("score"),
        label=opinion.get("label"),
        comment=opinion.get("comment", ""),
        by=(who, port.now()),
    )
    async with access.noting("feedback.given", run.id, "runs:write"):
        await port.give(run, given)
    return given
