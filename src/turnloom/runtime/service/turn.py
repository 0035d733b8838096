"""One way to take a turn."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from turnloom.agents.events import TurnFinished, TurnStarted
from turnloom.agents.spec import Component
from turnloom.runs.brief import Brief, Settlement, Sinks, TurnOutcome
from turnloom.runtime.service.answering import Answering
from turnloom.runtime.service.components import around_turn, every_component
from turnloom.runtime.service.gathering import Gatherer
from turnloom.runtime.service.guarding import end_turn
from turnloom.runtime.service.hooks import HookRunner
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.service.messages import MessageHooks
from turnloom.runtime.service.recovering import check_turn
from turnloom.runtime.service.selections import Selections
from turnloom.runtime.service.sights import Sights
from turnloom.runtime.spec import Loaded


class Turns:
    """Takes the turns of one run; `components` stand around those of every agent, outermost, and
    `window` is how many tokens fit into that of every model, if a setting says so."""

    def __init__(
        self,
        journal: Journal,
        loaded: Loaded,
        hooks: HookRunner,
        gatherer: Gatherer,
        selections: Selections,
        components: Sequence[Component] = (),
        window: int = 0,
    ) -> None:
        messages = MessageHooks(journal, loaded.message_hooks)
        sights = Sights(journal, loaded)
        around = partial(every_component, components, loaded.staff)
        self._components: Callable[[str], Sequence[Component]] = around
        self._answering = Answering(journal, loaded, sights, gatherer, messages, around, window)
        self._journal = journal
        self._loaded = loaded
        self._gatherer = gatherer
        self._hooks = hooks
        self._selections = selections
        self._hooked = bool(journal.workflow.hooks)
        self._watched = loaded.guards.loop_detection is not None

    async def take(self, brief: Brief, sinks: Sinks) -> Settlement:
        """An agent's go: hooks, the frame recorded and shown, the answer with its tools, hooks.

        Entered again after a kill or an answer, it finds on record what was done before.

        Raises:
            Waiting: a person was asked.
        """
        number, agent = brief.turn, brief.agent
        self._journal.keep(f"t{number}", lambda: TurnStarted(number, agent))
        answering = self._answer if brief.timeout is None else self._in_time
        outcome = await answering(brief, sinks)
        settlement = await brief.settle(outcome)
        for id, fact, actor in settlement.facts:
            self._journal.keep(id, lambda fact=fact: fact, actor)
        await self.end(brief, outcome, settlement)
        if self._journal.per_turn:
            await self._journal.commit()
        return settlement

    async def end(self, brief: Brief, outcome: TurnOutcome, settlement: Settlement) -> None:
        """Put on record how a turn ended, and what that says of an agent that was chosen for it."""
        number, agent = brief.turn, brief.agent
        failed = bool(outcome.error) or settlement.trouble is not None
        judged = await self._selections.judge(brief, outcome, failed=failed)
        end_turn(self._journal, number)
        status = "failed" if outcome.error else "done"
        finished = TurnFinished(number, agent, status, outcome.error)
        self._journal.keep(f"t{number}/end", lambda: finished)
        for place, fact in enumerate(judged):
            self._journal.record(f"t{number}/judged.{place}", fact)

    async def _in_time(self, brief: Brief, sinks: Sinks) -> TurnOutcome:
        """How the agent's answer ended, within the seconds that the brief gives it."""
        try:
            async with asyncio.timeout(brief.timeout):
                return await self._answer(brief, sinks)
        except TimeoutError:
            late = TimeoutError(f"It took over {brief.timeout:g} s.")
            return TurnOutcome(f"TimeoutError: {late}", cause=late)

    async def _answer(self, brief: Brief, sinks: Sinks) -> TurnOutcome:
        """The answer, with what is around it: hooks, components and loop detection."""
        number, agent = brief.turn, brief.agent
        if self._hooked:
            await self._hooks.before_agent(number, agent)
        components, sinks = self._components(agent), brief.listen(sinks)
        try:
            if components:
                answer = partial(self._answering.answer, brief, sinks)
                outcome = await around_turn(components, self._gatherer.turn(brief), answer)
            else:
                outcome = await self._answering.answer(brief, sinks)
        finally:
            self._gatherer.close(number)
        if self._hooked:
            await self._hooks.after_agent(number, agent)
        if self._watched:
            await check_turn(self._journal, self._loaded, brief)
        return outcome
