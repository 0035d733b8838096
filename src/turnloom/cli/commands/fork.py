"""`turnloom fork`: begin another run with the events of one, up to a point."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated

import typer

from turnloom.agents.events import QuestionAnswered, UserText
from turnloom.agents.logic.folding import open_questions
from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.conversing import ConversingCommand
from turnloom.cli.forms import AnswerForm, GivenValue
from turnloom.cli.stored import RunId, find_run
from turnloom.cli.terminal import Terminal, joined
from turnloom.errors import DefinitionError, UsageError
from turnloom.kernel.values import Json
from turnloom.log.events import RunForked
from turnloom.log.logic import standing, started_of
from turnloom.log.spec import Event
from turnloom.runtime.retrying import ASK
from turnloom.variables.events import ContextChanged, TimerSet

# The kinds of events that come with the beginning of a fork.
_BEGINNING = (ContextChanged.kind, QuestionAnswered.kind, UserText.kind, TimerSet.kind)


@dataclass(frozen=True, kw_only=True)
class ForkCommand(ConversingCommand):
    """Begin another run with the events of one, up to a point, and converse with it here. The run
    itself is not touched."""

    run: RunId
    at: Annotated[
        int,
        typer.Option(metavar="SEQ", min=1, help="The last event that the fork shares."),
    ]
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="ANSWER", callback=as_text, help="The answer to the question open there."
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a variable to JSON or a text; may be repeated."
        ),
    ] = None
    folder: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="FOLDER", callback=as_text, help="Continue with this definition."
        ),
    ] = None
    tools: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            callback=as_text,
            help="Calls that the run did not make: `ask` before each (without a terminal, they are "
            "refused), `recorded` refuses them; `live` makes all calls.",
        ),
    ] = ASK

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Fork the run, follow the fork, and say how to continue."""
        run = await find_run(app, self.run, self.app_id)
        loaded = await app.history.definition(run, app_id=self.app_id)
        if loaded.lacking and self.folder is None:
            raise DefinitionError(loaded.name, loaded.lacking)
        events = await app.history.events(run, app_id=self.app_id)
        fork = await app.handle(run, app_id=self.app_id).fork(
            self.at,
            answer=self._answer(events),
            values=_values(self.set_ or ()),
            folder=self.folder,
            tools=self.policy(self.tools),
        )
        if not (self.quiet or self.json):
            terminal.show(joined("Run ", (fork.id, "bold"), f" is a fork of run {run}."))
        shared = await app.history.events(fork.id, app_id=self.app_id)
        before = _before(standing(shared))
        return await self.converse(app, fork, terminal, started_of(shared).user, before=before)

    def _answer(self, events: Sequence[Event]) -> Json:
        """The answer as the question takes it that is open at the cut.

        Raises:
            UsageError: it does not fit.
        """
        if self.answer is None:
            return None
        asked = open_questions(standing(events[: self.at]))
        if len(asked) != 1 or not asked[0].tool:
            return self.answer
        form = AnswerForm(asked[0])
        read = form.read(self.answer)
        if isinstance(read, GivenValue):
            return read.value
        raise UsageError(f"This does not answer {asked[0].id!r}: {read}. It takes {form.demand}.")


def _before(events: Sequence[Event]) -> Sequence[Event]:
    """What a fork shares with its original, and its own beginning."""
    forked = max(n for n, event in enumerate(events) if event.kind == RunForked.kind)
    rest = takewhile(lambda event: event.kind in _BEGINNING, events[forked + 1 :])
    return [*events[: forked + 1], *rest]


def _values(said: Sequence[str]) -> dict[str, Json]:
    """Variables, as `tone=warm` or `limit=3`.

    Raises:
        UsageError: one has no value.
    """
    values: dict[str, Json] = {}
    for each in said:
        name, is_set, text = each.partition("=")
        if not is_set:
            raise UsageError(f"--set is {each!r}. Write a name and a value, as in tone=warm.")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values
