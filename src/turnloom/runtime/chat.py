"""The chats of users, live."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from turnloom.agents.events import AnswerRefused, QuestionAnswered, QuestionExpiredFact
from turnloom.agents.logic.answers import Answerer
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, RunKey
from turnloom.runs.chat import ChatEvent, Viewer, chat_view, is_put_to
from turnloom.runtime.runs import Runs

# Facts that refer to a question.
_OF_QUESTIONS = QuestionAnswered | QuestionExpiredFact | AnswerRefused


async def chat(
    runs: Runs, run: RunKey, who: Answerer | None, after: int = 0, *, live: bool = True
) -> AsyncGenerator[ChatEvent]:
    """What a person, by default the run's user, sees of a run after a position: live, up to its
    end, or what is stored.

    Raises:
        UnknownRun: there is no such run.
    """
    first, _ = await ends_of(runs.log, run)
    started = first.data
    by = who or Answerer(started.user, "user")
    viewer = Viewer(by.user, by.role, started.user, started.form)
    is_begun = after == 0
    async with aclosing(runs.events(run, after) if live else _stored(runs, run, after)) as events:
        async for event in events:
            if isinstance(event.data, _OF_QUESTIONS) and not is_begun:
                is_begun = True  # what came before is read only if an event refers to it
                earlier = await runs.log.read(run)
                viewer = _asked(viewer, [each for each in earlier if each.seq <= after])
            viewer = _asked(viewer, [event])
            if (shown := chat_view(event, viewer)) is not None:
                yield shown


async def _stored(runs: Runs, run: RunKey, after: int) -> AsyncGenerator[Event]:
    for event in await runs.log.read(run, after):
        yield event


def _asked(viewer: Viewer, events: list[Event]) -> Viewer:
    """The viewer, with the questions among these events that were put to them."""
    put = {event.data.question for event in events if is_put_to(event, viewer)}
    return replace(viewer, questions=viewer.questions | put) if put else viewer
