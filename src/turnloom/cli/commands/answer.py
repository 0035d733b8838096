"""`turnloom answer`: answer a question of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer

from turnloom.agents.events import QuestionAnswered, QuestionAsked
from turnloom.agents.logic.answers import Answerer, may_answer
from turnloom.agents.logic.folding import open_questions, question_of
from turnloom.agents.spec import Question
from turnloom.app import Loom, Run
from turnloom.cli.command import as_text
from turnloom.cli.forms import AnswerForm, GivenValue
from turnloom.cli.questions import gist
from turnloom.cli.stored import RunId, StoredRunsCommand, find_run, telling_of_waits
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import UsageError
from turnloom.kernel.roles import Role
from turnloom.log.logic import started_of
from turnloom.log.spec import LOCAL, Event
from turnloom.runs.principal import Principal
from turnloom.runtime.spec import Delivery


@dataclass(frozen=True, kw_only=True)
class AnswerCommand(StoredRunsCommand):
    """Answer a question of a run, from any terminal."""

    run: RunId
    answer: Annotated[
        str,
        typer.Argument(
            metavar="ANSWER", callback=as_text, help="A text; JSON or a word if a tool asks."
        ),
    ]
    question: Annotated[
        str | None, typer.Option(metavar="ID", help="Which question, if several are open.")
    ] = None
    user: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="Who answers.")
    ] = None
    role: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="Their role, if one is asked: user, developer, admin."),
    ] = None

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Deliver the answer, and say which process continues the run."""
        run = await find_run(app, self.run, self.app_id)
        handle = self._handle(app, run)
        asked = await handle.questions(user_id=self.user)
        events = await app.history.events(run, app_id=self.app_id)
        # Without open questions, one whose answer was not taken in yet counts.
        value = self._value(asked or self._own(events), events)
        async with telling_of_waits(handle, terminal):
            delivery = await handle.answer(self.question, value, user_id=self.user)
        if delivery is Delivery.TAKEN:
            terminal.show(safe(f"Answer recorded. The process that drives run {run} continues it."))
        elif delivery is Delivery.KEPT:
            terminal.show(
                safe(f"Answer kept. Run {run} continues with the program that declares it.")
            )
        elif delivery is Delivery.REPEATED:
            terminal.show(safe(f"Run {run} was answered before; the first answer counts."))
        else:
            terminal.show(
                safe(f"Answer recorded. No process is driving run {run}. To continue it:")
            )
            terminal.show(safe(f"  {self.again('resume', run)}"))
        return 0

    def _handle(self, app: Loom, run: str) -> Run:
        if self.role is None:
            return app.handle(run, app_id=self.app_id)
        role = cast("Role", self.role)  # which it checks
        return app.as_principal(Principal(self.app_id, self.user or LOCAL, role)).handle(run)

    def _value(self, asked: Sequence[Question], events: Sequence[Event]) -> Any:
        """The answer as the question takes it that is meant.

        Raises:
            UsageError: it does not fit, or it is open which question is meant.
        """
        question = self._meant(asked, started_of(events).user)
        is_open = question is not None
        if question is None and self.question is None:
            question = _answered_last(events)  # repeating the same answer changes nothing
        if question is None or not question.tool:
            return self.answer
        form = AnswerForm(question)
        read = form.read(self.answer)
        if isinstance(read, GivenValue):
            return read.value
        if not is_open:
            return self.answer
        raise UsageError(f"This does not answer {question.id!r}: {read}. It takes {form.demand}.")

    def _own(self, events: Sequence[Event]) -> list[Question]:
        """The unanswered questions that this person may see."""
        asked, user = open_questions(events), started_of(events).user
        if self.role is None and self.user in (None, user):
            return asked
        by = Answerer(self.user or LOCAL, self.role or "")
        return [each for each in asked if may_answer(each, by, user)]

    def _meant(self, asked: Sequence[Question], user: str) -> Question | None:
        """The open question of the given id or, without one, the only one that this person may
        answer."""
        if self.question is not None:
            return next((each for each in asked if each.id == self.question), None)
        by = Answerer(self.user or user, self.role or "")
        mine = [each for each in asked if may_answer(each, by, user)]
        if len(mine) > 1:
            which = "Say which one you answer, by `--question ID`:"
            error = UsageError(f"{len(mine)} questions are open. {which}")
            for each in mine:
                error.add_note(f"  {each.id}  {gist(each)}".rstrip())
            raise error
        return next(iter(mine or asked), None)


def _answered_last(events: Sequence[Event]) -> Question | None:
    """The question that was answered last."""
    answered = [each.data.question for each in events if isinstance(each.data, QuestionAnswered)]
    for event in events if answered else ():
        if isinstance(event.data, QuestionAsked) and event.data.question == answered[-1]:
            return question_of(event.data, event.seq)
    return None
