"""Runs in which artifacts decide: turns are taken side by side, and what comes meanwhile counts."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from turnloom.agents.events import TurnStarted
from turnloom.agents.spec import Ask, Decision, Finish, Judge, Rest, Spawn, TakeTurn
from turnloom.board.spec import Artifact
from turnloom.errors import UsageError
from turnloom.guards.logic.recovering import escalation
from turnloom.log.events import RunFinished, RunPaused
from turnloom.reaction.events import RunOpened
from turnloom.reaction.logic.reacting import Reacting
from turnloom.reaction.spec.tray import Tray
from turnloom.runs.brief import UNSETTLED, Sinks, TurnOutcome
from turnloom.runtime.logic import ENDED, ending
from turnloom.runtime.service.board import ReactionBrief
from turnloom.runtime.service.calls import Waiting, ask
from turnloom.runtime.service.crew import Crew
from turnloom.runtime.service.endings import end_cancelled, end_failed
from turnloom.runtime.service.guarding import begin_turn
from turnloom.runtime.service.intake import due
from turnloom.runtime.service.judging import offer, undelivered
from turnloom.runtime.service.opened import Opened


class Post(Protocol):
    """Carries things from one run of a board to another."""

    async def deliver(self, board: str, subscription: str, artifact: Artifact, depth: int) -> None:
        """Bring an artifact to the run that collects for a subscription; so many turns in a row
        led to it."""
        ...

    async def open(self, board: str, spawn: Spawn, parent: str) -> None:
        """Begin the run of a set that was collected."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What reactions need of the driver: messages from outside, timers, whom to tell, room."""

    take_in: Callable[[Opened], Awaitable[None]]
    expire: Callable[[Opened], None]
    sinks: Callable[[Opened, int, str], Sinks]
    room: Callable[[Opened, str], AbstractAsyncContextManager[None]]
    post: Post | None


class Reactions:
    """One drive of a run of a board."""

    def __init__(self, opened: Opened, around: Surroundings, crew: Crew) -> None:
        self._opened = opened
        self._around = around
        self._crew = crew
        self._sent: set[tuple[str, str]] = set()
        workflow = opened.journal.workflow
        assert isinstance(workflow, Reacting)
        self._workflow = workflow

    async def drive(self) -> None:
        """Decide and act until the run ends, or there is nothing to do."""
        state = self._opened.journal.state
        async with self._crew:
            if state.cancel is None:
                self._go_on()
            while state.status not in ENDED and await self._step():
                pass

    async def _step(self) -> bool:
        """The next thing that happens in the run; whether more may follow."""
        opened, state = self._opened, self._opened.journal.state
        self._around.expire(opened)
        if state.cancel is not None or (state.failure is not None and not self._crew.is_busy):
            await self._crew.stop()
            await self._end()
            return False
        decision = await self._decide()
        for id, fact in decision.facts:
            opened.journal.record(id, fact)
        match decision:
            case Judge():
                types = opened.loaded.types
                await offer(opened.journal, self._workflow, types, decision, opened.selections)
            case TakeTurn(agent=agent):
                self._begin(agent)
            case Ask(question=question):
                ask(opened.journal, question)
            case Spawn():
                await self._spawn(decision)
            case Finish(reason=reason) if not self._crew.is_busy:  # nor stores what it came to
                await self._finish(reason)
            case _:
                return bool(decision.facts) or await self._rest()
        return True

    async def _decide(self) -> Decision:
        """What comes next; nothing begins in a run that is to end."""
        journal, state = self._opened.journal, self._opened.journal.state
        if not state.turns:
            await self._opened.hooks.before_chat()
            await self._opened.offer()
        decision = Rest() if state.failure else escalation(state) or self._workflow.decide(state)
        if isinstance(decision, TakeTurn) and not begin_turn(journal, state.turns + 1):
            return Rest()
        return decision

    def _go_on(self) -> None:
        """Let turns be taken that are open and that nobody takes: they were cut off, or waited for
        a person."""
        for number, turn in self._opened.journal.state.open.items():
            if number not in self._crew:
                self._crew.begin(number, self._take(number, turn.agent))

    @property
    def _post(self) -> Post:
        if self._around.post is None:
            raise UsageError("Nothing here goes from one run to another. Use `Loom.board`.")
        return self._around.post

    def _begin(self, agent: str) -> None:
        journal = self._opened.journal
        number = journal.state.turns + 1
        journal.record(f"t{number}", TurnStarted(number, agent))
        self._crew.begin(number, self._take(number, agent))

    async def _take(self, number: int, agent: str) -> None:
        opened = self._opened
        async with self._around.room(opened, agent):
            try:
                brief = ReactionBrief(opened, self._workflow, number, agent)
                await opened.turns.take(brief, self._around.sinks(opened, number, agent))
            except Waiting:
                pass  # on record, and the turn stays open
            except asyncio.CancelledError:
                if self._crew.is_stopping:
                    raise
                # It ended itself, although nobody interrupts it.
                error = "CancelledError: it cancelled its own task"
                brief = ReactionBrief(opened, self._workflow, number, agent)
                await opened.turns.end(brief, TurnOutcome(error), UNSETTLED)
        await opened.selections.settle()
        if self._crew.size > 1:  # the others may take long
            await opened.journal.commit()

    async def _spawn(self, spawn: Spawn) -> None:
        """Let a set have its own run: that it is taken comes first, then the run."""
        journal = self._opened.journal
        await journal.commit()
        await self._post.open(self._workflow.name, spawn, journal.state.run)
        ids = tuple(artifact.id for artifact in spawn.artifacts)
        journal.record(f"set/{spawn.run}/opened", RunOpened(spawn.run, ids))

    async def _rest(self) -> bool:
        """Wait while turns are being taken; else say that the run rests. Whether to go on."""
        opened, journal = self._opened, self._opened.journal
        await self._send()
        if journal.state.question is None:
            self._go_on()
        if self._crew.is_busy:
            await self._crew.wait(self._seconds())
            await self._around.take_in(opened)
            return True
        if journal.state.failure is not None:
            return True
        if journal.state.question is None and journal.is_open:
            opens = self._workflow.due(journal.state)
            journal.record(f"rest@{journal.state.position}", RunPaused("", opens))
        return False

    def _seconds(self) -> float | None:
        journal = self._opened.journal
        instant = due(journal)
        left = instant and (instant - journal.clock.now()).total_seconds()
        return None if left is None else max(0.0, left)

    async def _finish(self, reason: str) -> None:
        await self._send()
        if self._opened.hooks.any:
            await self._opened.hooks.after_chat("finished")
        self._opened.journal.record("end", RunFinished(reason))

    async def _end(self) -> None:
        journal, hooks = self._opened.journal, self._opened.hooks
        if ending(journal.state) == "cancelled":
            await end_cancelled(journal, hooks)
        else:
            await end_failed(journal, hooks)

    async def _send(self) -> None:
        """Bring what others collect to them, after it is on record here."""
        tray: Tray = self._opened.journal.state.progress
        left = undelivered(tray, self._sent)
        if not left:
            return
        await self._opened.journal.commit()
        for artifact, subscription in left:
            depth = tray.depths[artifact.id]
            await self._post.deliver(self._workflow.name, subscription, artifact, depth)
            self._sent.add((artifact.id, subscription))
