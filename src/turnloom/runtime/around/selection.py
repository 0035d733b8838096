"""Selections in one run: made once, recorded, and judged by how the turn ends."""

import logging
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

from turnloom.guards.events import SelectionJudged, SelectionMade
from turnloom.guards.logic.selection import (
    SelectionRequest,
    answer_of,
    category_of,
    credit_of,
    names_in,
    read_credit,
)
from turnloom.guards.service import Selector
from turnloom.guards.spec import GENERAL, Category, Guards, Selection
from turnloom.kernel.code import qualified
from turnloom.kernel.contained import error_name
from turnloom.kernel.values import error_text, writable
from turnloom.log.spec import Fact
from turnloom.runs.brief import Brief, TurnOutcome
from turnloom.runtime.journal import Journal
from turnloom.runtime.user_code import ask_user_code

log = logging.getLogger("turnloom.guards")

# Seconds that a category or a score function may take.
DEADLINE = 5.0


class ChoiceRequest(NamedTuple):
    """A choice to be made: the candidates, and what the category function is given. `meant` is the
    agent that the turn would go to, `artifact` the one that wakes the candidates.

    `meant` is whom the turn would go to, `artifact` what wakes the candidates.
    """

    among: Sequence[str]
    about: Any
    meant: str = ""
    artifact: str = ""


class Selections:
    """The selections of one run."""

    def __init__(self, journal: Journal, guards: Guards, selecting: Selector) -> None:
        self.own = guards.selection
        self._journal = journal
        self._selecting = selecting
        self._owes = False

    async def choose(self, key: str, selection: Selection, wanted: ChoiceRequest) -> SelectionMade:
        """The recorded choice under a key; if there is none, a new one."""

        async def effect() -> Sequence[Fact]:
            state = self._journal.state
            await self._journal.commit()  # what this run has learned counts too
            asked = await self._asked(selection, wanted)
            made = self._selecting.choose(selection, asked, state.tenant, state.workflow)
            return (await made,)

        (made,) = await self._journal.once(key, effect)
        assert isinstance(made, SelectionMade)
        return made

    async def _asked(self, selection: Selection, wanted: ChoiceRequest) -> SelectionRequest:
        values, excluded = self._journal.state.values, set(selection.exclude)
        if selection.exclude_variable is not None:
            excluded.update(names_in(values.get(selection.exclude_variable)))
        category, notes = await self._category(selection.about, wanted.about)
        return SelectionRequest(
            category,
            wanted.among,
            tuple(excluded),
            wanted.meant,
            artifact=wanted.artifact,
            notes=notes,
        )

    async def _category(self, category: Category, about: Any) -> tuple[str, tuple[str, ...]]:
        """The category of a turn, and why it is unknown if it is."""
        if category.constant is not None:
            return category.constant, ()
        if category.variable is not None:
            found, why = self._journal.state.values.get(category.variable), "has no value"
            source = f"variable {category.variable!r}"
        else:
            found, why = await self._called(category.function, about)
            source, why = "the function that says the category", why or "gave none"
        text = self._journal.secrets.received(category_of(found))
        return (text, ()) if text else (GENERAL, (f"{source} {why}",))

    async def judge(
        self, brief: Brief, outcome: TurnOutcome, *, failed: bool
    ) -> list[SelectionJudged]:
        """The credit of the selected agent in each category, from the end of a turn."""
        choice = brief.choice
        if choice is None or not choice.categories:
            return []
        state, selection = self._journal.state, choice.selection
        credit, note = (0.0, "") if failed else await self._credit(selection, outcome.facts)
        self._owes = not self._selecting.follows_log
        return [
            SelectionJudged(
                brief.turn,
                choice.chosen,
                state.tenant,
                state.workflow,
                category=each,
                credit=credit,
                decay=selection.decay,
                note=note,
            )
            for each in dict.fromkeys(choice.categories)
        ]

    async def settle(self) -> None:
        """Store outcomes before anything else: an ended run is not looked at again."""
        if self._owes:
            self._owes = False
            await self._journal.commit()

    async def _credit(self, selection: Selection, facts: Sequence[Fact]) -> tuple[float, str]:
        """How much of a success an accepted answer is; and a note if its function failed."""
        answer = answer_of(facts)
        if selection.score is None:
            return credit_of(answer), ""
        given, why = await self._called(selection.score, answer)
        try:
            return (credit_of(answer), f"the score {why}") if why else (read_credit(given), "")
        except ValueError as error:
            return credit_of(answer), error_text(error)

    async def _called(self, function: Any, about: Any) -> tuple[Any, str]:
        """The result of a function, or its error. The message may quote its arguments, so it goes
        to the program's log only, masked."""
        try:
            return await ask_user_code(function, about, deadline=DEADLINE), ""
        except Exception as error:  # noqa: BLE001 - logged, and recorded
            lines = "".join(traceback.format_exception(error))
            stack = self._journal.secrets.masked(writable(lines)).rstrip()
            log.warning("%s failed\n%s", qualified(function), stack)
            return None, f"failed with {error_name(error)}"
