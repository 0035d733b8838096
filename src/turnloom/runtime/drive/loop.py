"""The one driver loop and its tasks. Nothing here names a form."""

import asyncio
from collections.abc import Coroutine, Iterable
from contextvars import Context, copy_context
from datetime import datetime
from types import TracebackType
from typing import Any

from turnloom.agents.events import QuestionExpiredFact
from turnloom.guards.logic.loops import escalation
from turnloom.kernel.deadlines import uninterrupted
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Fact
from turnloom.runs.actions import Action, Ask, Begin, Facts, Finish, Record, Work
from turnloom.runtime.around.guards import afford
from turnloom.runtime.calls import Waiting, ask
from turnloom.runtime.drive.intake import can_deliver, deliver, due, park
from turnloom.runtime.drive.live import LiveRun
from turnloom.runtime.limits import Congested, SharedRoom
from turnloom.runtime.logic import ENDED, has_open_calls
from turnloom.runtime.world import RUN


class TaskSet:
    """Tasks by the key of their work. On exit, none is left behind."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_changed = False
        self._waiter: asyncio.Future[None] | None = None
        self._roused = True

    async def __aenter__(self) -> "TaskSet":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.stop()

    def __contains__(self, key: str) -> bool:
        return key in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        """Run work concurrently. It calls `wake` when it ends."""
        self._tasks[key] = asyncio.create_task(work)

    async def stop(self) -> None:
        """Cancel all tasks, and wait for their end."""
        await self.drop([*self._tasks])

    async def drop(self, keys: Iterable[str]) -> None:
        """Cancel some tasks, all before any continues, and wait for their end."""
        tasks = [self._tasks.pop(key) for key in keys if key in self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # cancelled: its error does not matter

    async def _change(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self.wake) if seconds is not None else None
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """Let the loop look at its tasks again."""
        self._is_changed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def rouse(self) -> None:
        """Note that something came from outside."""
        self._roused = True
        self.wake()

    def take_roused(self) -> bool:
        """Whether something may have come from outside since the last call."""
        roused, self._roused = self._roused, False
        return roused

    async def wait(self, seconds: float | None) -> None:
        """Wait until a task ends or something comes, up to a timeout.

        Raises:
            Exception: whatever a task raised that was not recorded.
        """
        if not self._is_changed:
            await self._change(seconds)
        self._is_changed = False
        for key, task in [*self._tasks.items()]:
            if task.done():
                del self._tasks[key]
                task.result()


# The prefix of ids of what the run itself does, outside turns and steps.
CHAT = "chat/"

# The reason of a question that is closed because its turn or step ended.
OVER = "what asked is over"


class Loop:
    """One drive of one run."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal
        self._state = live.journal.state
        self._form = live.journal.workflow
        # Made per drive and held here only: a reference from the run would be a cycle, left to the
        # garbage collector.
        assert live.loaded.runtime is not None
        self._half = live.loaded.runtime(live)
        self._tasks = TaskSet()
        self._parked: dict[str, set[str]] = {}
        # Work that waits for a limit; the next drive tries it again.
        self._congested: dict[str, datetime] = {}
        self._is_prepared = False
        self._is_dirty = False
        self.heeds_mail = False
        self._beside: Context | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._is_unheard = False

    def rouse(self) -> None:
        """Read mail before anything else. While a turn is awaited in place, messages of the user
        are heard beside it."""
        self._tasks.rouse()
        self._is_unheard = True
        if self._beside is not None and (self._hearing is None or self._hearing.done()):
            self._hearing = asyncio.create_task(self._hear(), context=self._beside)

    async def _hear(self) -> None:
        while self._is_unheard:
            self._is_unheard = False
            await self._live.hear()

    async def drive(self) -> None:
        """Decide and act until the run ends, or has to wait for something from outside."""
        state, journal = self._state, self._journal
        async with self._tasks:
            while state.status not in ENDED:
                await self._take_in()
                if self._over():
                    await self._cut_off()
                    continue
                if await self._act() or await self._begin_open():
                    continue
                if not self._tasks:
                    break
                await self._wait()
        self._live.congested = min(self._congested.values(), default=None)
        if not self._congested or state.status in ENDED:
            park(journal)
        await journal.commit()

    async def _take_in(self) -> None:
        state, journal = self._state, self._journal
        if self._tasks.take_roused():
            await self._live.take_in()
        elif due(self._form, state) is not None:
            self._live.expire()
        if journal.is_unsettled:
            await journal.settle()
        if can_deliver(state):
            await journal.world.reach(RUN)
            if can_deliver(state):
                deliver(journal)
                self._is_dirty = True
        if state.position >= self._live.freezes_at:
            await self._live.freeze()

    async def _act(self) -> bool:
        """Perform the next action, if one can be performed now; returns whether there was one."""
        if self._state.questions and self._is_waiting():
            return False
        try:
            if not self._is_prepared:
                await self._live.prepare(acts=bool(self._startable()))
                self._is_prepared = True
            action = await self._journal.world.decide(self._decide)
            if action is None:
                return False
            if self._tasks and isinstance(action, Finish):
                if not action.at_once:
                    return False  # work in progress ends first
                await self._journal.commit()
                await self._tasks.stop()
            await self._do(action)
        except Waiting:
            self._is_dirty = True  # a hook asked: the question is recorded
        return True

    def _is_waiting(self) -> bool:
        """Whether a hook of the run itself waits for an answer."""
        return any(id.startswith(CHAT) for id in self._state.questions)

    def _decide(self) -> Action | None:
        """A question of the guards, or the form's next action."""
        state = self._state
        if state.guards is not None and not (state.unguarded or state.cancel or state.failure):
            question = escalation(state)
            if question is not None:
                return None if question.id in state.questions else Ask(question)
        return self._form.decide(state)

    async def _do(self, action: Action) -> None:
        self._record(action.facts)
        match action:
            case Begin(charge=charge, opens=opens, of=of):
                if afford(self._journal, charge, of):
                    self._record(opens)
                    self._is_dirty = False  # the work stores this before it acts
                    await self._begin_open()
                return
            case Record():
                pass
            case Ask(question=question):
                ask(self._journal, question)
            case Finish():
                await self._finish(action)
            case _:
                following = await self._half.act(action)
                if following is not None:
                    await self._do(following)
        self._is_dirty = True

    def _record(self, facts: Facts) -> None:
        for id, fact in facts:
            self._journal.record(id, fact)

    async def _finish(self, action: Finish) -> None:
        """End the run: interrupt open work, run the last hooks, record the end."""
        hooks = self._live.hooks
        if action.status == "cancelled":
            hooks.give_up()
        if action.at_once:
            for work in self._form.work(self._state):
                await self._cut(work)
        await hooks.after_chat(action.status)
        self._journal.record("end", self._end(action))

    def _end(self, action: Finish) -> Fact:
        failure, wish = self._state.failure, self._state.cancel
        if action.status == "failed" and failure is not None:
            return RunFailed(failure.error, failure.message)
        if action.status == "cancelled" and wish is not None:
            return RunCancelled(wish.by, wish.reason)
        return RunFinished(action.reason)

    async def _cut_off(self) -> None:
        """Interrupt work that is over."""
        await self._journal.commit()  # a task must not be cancelled while it stores something
        await self._journal.world.reach(RUN)
        over = self._over()  # work may have ended meanwhile
        await self._tasks.drop([work.key for work in over])
        await self._journal.world.reach(RUN)
        for work in over:
            await self._cut(work)

    def _over(self) -> list[Work]:
        return [work for work in self._form.work(self._state) if work.is_over]

    async def _cut(self, work: Work) -> None:
        await self._half.cut_off(work)
        self._withdraw(work)

    def _withdraw(self, work: Work) -> None:
        """Close the questions of work that is over."""
        for id in [*filter(work.asked, self._state.questions)]:
            self._journal.record(f"{id}/expired", QuestionExpiredFact(id, OVER))

    async def _begin_open(self) -> bool:
        """Begin all open work: new, interrupted with another process, or answered. A lone piece of
        work is awaited in place; returns whether there was one."""
        left = self._startable()
        if len(left) == 1 and not self._tasks and self._is_lone(left[0]):
            await self._run_in_place(left[0])
            return True
        for work in left:
            self._tasks.begin(work.key, self._run_beside(work))
        return False

    async def _run_in_place(self, work: Work) -> None:
        """Run lone work; what is heard meanwhile is stored before anything else is done."""
        self._beside = copy_context() if self._form.hears else None
        try:
            await self._run(work)
        finally:
            self._beside = None
            failed = await self._heard()
        if failed is not None:
            raise failed

    async def _heard(self) -> BaseException | None:
        """Wait for what is being heard, however often the drive is cancelled meanwhile: the claim
        lasts until it is stored. Returns why it was not."""
        hearing, self._hearing = self._hearing, None
        if hearing is None:
            return None
        try:
            await uninterrupted(asyncio.wait({hearing}))
        finally:
            failed = hearing.exception()
        return failed

    async def _run_beside(self, work: Work) -> None:
        """Run work in a task of its own; the loop wakes when that is done."""
        try:
            await self._run(work)
        finally:
            self._tasks.wake()

    def _startable(self) -> list[Work]:
        """The open work that is not running, and can."""
        works = self._form.work(self._state)
        busy = self._tasks, self._congested
        return [
            work
            for work in works
            if not any(work.key in each for each in busy) and not self._waits(work)
        ]

    def _is_lone(self, work: Work) -> bool:
        """Whether nothing can happen beside this work: a tool that may ask could be answered while
        another one runs."""
        return work.is_alone and not self._live.may_ask(work.agent)

    def _waits(self, work: Work) -> bool:
        """Whether work is over, or waits for answers and has nothing else to do meanwhile."""
        if work.is_over or not self._state.questions:
            return work.is_over
        asked = set(filter(work.asked, self._state.questions))
        if not asked:
            return False
        known = self._parked.get(work.key)
        return known <= asked if known is not None else not has_open_calls(self._state, asked)

    async def _run(self, work: Work) -> None:
        try:
            await self._journal.world.reach(work.key)
            room = self._live.room(work)
            if room is None:
                await self._half.run(work)
            else:
                await self._run_in(room, work)
        except Waiting as waiting:
            self._leave(work, waiting)
        except asyncio.CancelledError:
            if not self._cancelled_itself(work):
                raise
            await self._half.fail(work, "it cancelled its own task")
            self._withdraw(work)
        else:
            if self._state.questions:
                await self._journal.world.reach(work.key)
                self._withdraw(work)
        finally:  # a question that was cut off before it was recorded takes no place
            self._journal.asking -= {*filter(work.asked, self._journal.asking)}
        await self._live.selections.settle()
        if len(self._tasks) > 1:  # the others may take long
            await self._journal.commit()

    def _leave(self, work: Work, waiting: Waiting) -> None:
        """Note what work waits for: a limit, or answers."""
        if isinstance(waiting, Congested):
            self._congested[work.key] = waiting.due
        else:
            self._parked[work.key] = set(filter(work.asked, self._state.questions))

    async def _run_in(self, room: asyncio.Semaphore | SharedRoom, work: Work) -> None:
        """Run work once there is room for it."""
        if room.locked():
            await self._journal.commit()  # it may take long
        async with room:
            await self._half.run(work)

    def _cancelled_itself(self, work: Work) -> bool:
        """Whether work cancelled its own task: the loop removes a task before it cancels it."""
        if work.key in self._tasks:
            return True
        current = asyncio.current_task()
        return current is not None and not current.cancelling()

    async def _wait(self) -> None:
        """Wait for the first end, mail or timer."""
        if self._is_dirty:
            self._is_dirty = False
            await self._journal.commit()
        self.heeds_mail = True
        try:
            await self._tasks.wait(self._live.seconds_until(due(self._form, self._state)))
        finally:
            self.heeds_mail = False
