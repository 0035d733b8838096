"""A run in memory."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from turnloom.agents.events import ToolsOffered, TurnFinished
from turnloom.agents.spec import Component, DeclaredServer
from turnloom.errors import ToolServerError
from turnloom.flow.ports import Results
from turnloom.guards.service import Selector
from turnloom.log.ports import EventLog
from turnloom.log.spec import Fact, RunKey
from turnloom.runs.actions import Forward, OpenRun, Work
from turnloom.runs.brief import Sinks, TextSink, discard
from turnloom.runs.chat import delta_audience
from turnloom.runtime.around.hooks import HookRunner
from turnloom.runtime.around.selection import Selections
from turnloom.runtime.calls import exposed
from turnloom.runtime.drive.intake import expire, hear, take_in
from turnloom.runtime.journal import Journal
from turnloom.runtime.limits import SharedRoom
from turnloom.runtime.logic import freeze
from turnloom.runtime.ports import Artifacts, Entropy, Inbox, Permits, Snapshots
from turnloom.runtime.spec import Delta, Limit, LoadedWorkflow
from turnloom.runtime.turn.context import Gatherer
from turnloom.runtime.turn.turn import Turns

# Events of a run before its first snapshot.
FREEZE = 1000


class TextListener(Protocol):
    """Hears the answers in progress."""

    def publish(self, run: RunKey, delta: Delta, user: str) -> None:
        """Take a delta; `user` sees it in their chat."""
        ...

    def end(self, run: RunKey, turn: int) -> None:
        """Note that a turn is not taken any more."""
        ...


class RunDelivery(Protocol):
    """Delivers between the runs of a board."""

    async def deliver(self, board: str, what: Forward) -> None:
        """Deliver an artifact to the run that collects for a subscription."""
        ...

    async def open(self, board: str, opening: OpenRun, parent: str) -> None:
        """Start the run of a collected set."""
        ...


@dataclass(frozen=True, slots=True)
class RunResources:
    """What runs need from their process: stores, randomness, delta listeners, delivery between
    runs. `rooms` limit agents over all runs of a tenant; `components` wrap every turn and call,
    outermost. `window` is the context window of every model in tokens; 0: as its engine knows.
    `permits` limit agents over all processes, where several drive runs."""

    inbox: Inbox
    artifacts: Artifacts
    snapshots: Snapshots
    results: Results
    log: EventLog
    selecting: Selector
    entropy: Entropy
    hear: TextListener | None
    post: RunDelivery | None
    rooms: dict[tuple[str, str, str, str, int], asyncio.Semaphore]
    components: tuple[Component, ...] = ()
    window: int = 0
    permits: Permits | None = None


class LiveRun:
    """A run in memory: its journal, its turns and its hooks."""

    def __init__(
        self,
        journal: Journal,
        loaded: LoadedWorkflow,
        means: RunResources,
        frozen: int,
        began: datetime,
    ) -> None:
        self.journal = journal
        self.loaded = loaded
        self.means = means
        self.began = began
        self.driven = False
        # When to try again, if the last drive stopped at a limit.
        self.congested: datetime | None = None
        self.freezes_at = max(2 * frozen, FREEZE)
        self._hides: dict[str, bool] = {}
        self._asking: dict[str, bool] = {}
        self.hooks = HookRunner(journal, loaded.hooks)
        self.selections = Selections(journal, loaded.guards, means.selecting)
        gatherer = Gatherer(journal, loaded, means.artifacts)
        around = means.components, means.window
        self.turns = Turns(journal, loaded, self.hooks, gatherer, self.selections, *around)

    async def take_in(self) -> None:
        """Record what came from outside: time, then messages."""
        await take_in(self.journal, self.means.inbox, self.means.artifacts)

    async def hear(self) -> None:
        """Record messages of the run's user while a turn is open."""
        await hear(self.journal, self.means.inbox)

    def expire(self) -> None:
        """Record what has expired."""
        expire(self.journal)

    async def prepare(self, *, acts: bool) -> None:
        """Restore objects that were lost with another process, unless the run only waits. Before
        the first turn, run the hooks before the chat and list the tools of servers."""
        journal, state = self.journal, self.journal.state
        if state.ephemeral and (acts or state.status != "paused"):
            await self.hooks.restore()
        if state.begun or state.cancel is not None:
            return
        await self.hooks.before_chat()
        for server in journal.workflow.toolkit.servers:
            if server.name in journal.state.offered:
                continue
            id = f"chat/server.{server.name}"
            (fact,) = await journal.perform(id, partial(self._offered, server))
            await journal.put(id, fact)

    async def _offered(self, server: DeclaredServer) -> Sequence[Fact]:
        """The tools that a server offers, or why it offers none."""
        try:
            offered = await self.loaded.servers[server.name](self.journal.state.tenant).tools()
            wanted = [tool for tool in offered if not server.tools or tool.name in server.tools]
            return (ToolsOffered(server.name, tuple(wanted)),)
        except ToolServerError as error:
            return (ToolsOffered(server.name, (), str(error)),)

    def room(self, work: Work) -> asyncio.Semaphore | SharedRoom | None:
        """The slots for turns of an agent, over all runs of its tenant in all processes that drive
        them; None if they are not limited."""
        agent = work.agent
        most = self.loaded.staff[agent].most if agent else None
        if most is None:
            return None
        tenant, name = self.journal.run.tenant, self.journal.workflow.name
        if self.means.permits is not None:
            limit = Limit(f"agent {tenant}/{name}/{agent}", most)
            return SharedRoom(self.means.permits, limit, f"{self.journal.run.id}/{work.key}")
        key = (tenant, self.loaded.root, name, agent, most)
        return self.means.rooms.setdefault(key, asyncio.Semaphore(most))

    def may_ask(self, agent: str) -> bool:
        """Whether tools of an agent may ask people."""
        if agent not in self._asking:
            tools = self.journal.workflow.toolkit.of(agent) if agent else ()
            self._asking[agent] = any(self.loaded.tools[tool.title].may_ask for tool in tools)
        return self._asking[agent]

    @contextmanager
    def sinks(self, turn: int, agent: str) -> Generator[Sinks]:
        """Send the text deltas of a turn to listeners while the context is open, unless part of
        them may have to be hidden."""
        if agent not in self._hides:
            self._hides[agent] = _may_hide(self.journal, self.loaded, agent)
        if self.means.hear is None or self._hides[agent]:
            yield _hushed
            return
        try:
            yield self._sinks(turn, agent, self.means.hear)
        finally:
            self.means.hear.end(self.journal.run, turn)

    def _sinks(self, turn: int, agent: str, hear: TextListener) -> Sinks:
        run = self.journal.run
        user = delta_audience(self.journal.workflow.form, self.journal.state.user)

        def sinks(call: int) -> TextSink:
            said, attempt = 0, 1

            def sink(text: str | None) -> None:
                nonlocal said, attempt
                if text is None:
                    attempt += said > 0
                    said = 0
                elif text:
                    piece = Delta(run.id, turn, agent, said, text=text, call=call, attempt=attempt)
                    hear.publish(run, piece, user)
                    said += len(text)

            return sink

        return sinks

    async def cut_off_turn(self, work: Work) -> None:
        """Record that a turn was cancelled, after the hooks that follow the agent."""
        await self.hooks.after_agent(work.turn, work.agent)
        fact = TurnFinished(work.turn, work.agent, "cancelled")
        self.journal.record(f"t{work.turn}/end", fact)

    def seconds_until(self, instant: datetime | None) -> float | None:
        """Seconds until an instant."""
        if instant is None:
            return None
        return max(0.0, (instant - self.journal.clock.now()).total_seconds())

    async def freeze(self) -> None:
        """Save a snapshot; each at twice the position of the last, so that the cost per turn is
        constant."""
        state = self.journal.state
        if state.scopes:
            return
        await self.journal.commit()
        await self.means.snapshots.save(self.journal.run, state.position, freeze(state))
        self.freezes_at = 2 * state.position


def _hushed(call: int) -> TextSink:
    return discard


def _may_hide(journal: Journal, loaded: LoadedWorkflow, agent: str) -> bool:
    """Whether an answer of the agent may have to be hidden, or a secret in it masked."""
    workflow, knows = journal.workflow, bool(exposed(journal, loaded, agent))
    return knows or not workflow.shows(agent) or workflow.triggers.may_hide(agent)
