"""The one driver loop. Nothing here names a form."""

import asyncio

from turnloom.guards.logic.recovering import escalation
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Fact
from turnloom.runs.actions import Action, Ask, Begin, Facts, Finish, Record, Work
from turnloom.runtime.logic import ENDED
from turnloom.runtime.service.calls import Waiting, ask
from turnloom.runtime.service.guarding import afford
from turnloom.runtime.service.intake import due, expire, park, take_in
from turnloom.runtime.service.live import LiveRun
from turnloom.runtime.service.tasks import TaskSet

# The beginning of the ids of what the run itself does, outside of turns and steps.
CHAT = "chat/"


class Loop:
    """One drive of one run: as far as it gets without help from outside."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal
        self._state = live.journal.state
        self._form = live.journal.workflow
        self._half = live.runtime
        self._tasks = TaskSet()
        self._parked: set[str] = set()
        self._is_prepared = False
        self._is_dirty = False
        self.heeds_mail = False

    def rouse(self) -> None:
        """Have mail read before anything else is done."""
        self._tasks.rouse()

    async def drive(self) -> None:
        """Decide and act until the run ends, or nothing is left to do until something comes."""
        state, journal = self._state, self._journal
        async with self._tasks:
            while state.status not in ENDED:
                await self._take_in()
                if await self._cut_off() or await self._act() or await self._begin_open():
                    continue
                if not self._tasks:
                    break
                await self._wait()
        park(journal)
        await journal.commit()

    async def _take_in(self) -> None:
        state, journal = self._state, self._journal
        if self._tasks.take_roused():
            await take_in(journal, self._live.inbox, self._live.artifacts)
        elif due(self._form, state) is not None:
            expire(journal)
        if journal.is_unsettled:
            await journal.settle()
        if not state.questions:
            self._parked.clear()
        if state.position >= self._live.freezes_at:
            await self._live.freeze()

    async def _act(self) -> bool:
        """Do the next thing, if there is one that can be done now; whether there was."""
        if self._state.questions and self._is_waiting():
            return False
        try:
            if not self._is_prepared:
                await self._live.prepare()
                self._is_prepared = True
            action = self._decide()
            if action is None:
                return False
            if isinstance(action, Finish) and self._tasks:
                if not action.at_once:
                    return False  # what was begun comes to its end first
                await self._tasks.stop()
            await self._do(action)
        except Waiting:  # a hook asked: the question is on record
            self._parked.add(CHAT)
        return True

    def _is_waiting(self) -> bool:
        """Whether a hook of the run itself waits for an answer."""
        return CHAT in self._parked or any(id.startswith(CHAT) for id in self._state.questions)

    def _decide(self) -> Action | None:
        """What guards want of a person, or what the form decides."""
        state = self._state
        if state.guards is not None and not (state.unguarded or state.cancel or state.failure):
            question = escalation(state)
            if question is not None:
                return None if state.questions else Ask(question)
        return self._form.decide(state)

    async def _do(self, action: Action) -> None:
        self._record(action.facts)
        match action:
            case Begin(charge=charge, opens=opens, of=of):
                if afford(self._journal, charge, of):
                    self._record(opens)
                    self._is_dirty = False  # what is begun stores all this before it acts
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
        """End the run: what is open is cut off, and hooks hear how it ended."""
        hooks = self._live.hooks
        if action.status == "cancelled":
            hooks.give_up()
        if action.at_once:
            for work in self._form.work(self._state):
                await self._half.cut_off(work)
        await hooks.after_chat(action.status)
        self._journal.record("end", self._end(action))

    def _end(self, action: Finish) -> Fact:
        failure, wish = self._state.failure, self._state.cancel
        if action.status == "failed" and failure is not None:
            return RunFailed(failure.error, failure.message)
        if action.status == "cancelled" and wish is not None:
            return RunCancelled(wish.by, wish.reason)
        return RunFinished(action.reason)

    async def _cut_off(self) -> bool:
        """Interrupt work that is over, before anything else can happen; whether there was any."""
        over = [work for work in self._form.work(self._state) if work.is_over]
        if over:
            await self._tasks.drop([work.key for work in over])
            for work in over:
                await self._half.cut_off(work)
        return bool(over)

    async def _begin_open(self) -> bool:
        """Begin all work that is open: fresh, cut off with another process, or answered. A lone
        piece of work is awaited in place; whether there was one."""
        works = self._form.work(self._state)
        left = [work for work in works if not (work.key in self._tasks or self._waits(work))]
        if len(left) == 1 and left[0].is_alone and not self._tasks:
            await self._run(left[0])
            return True
        for work in left:
            self._tasks.begin(work.key, self._run(work))
        return False

    def _waits(self, work: Work) -> bool:
        """Whether work is over, or waits for an answer: to its own question, or another one."""
        questions = self._state.questions
        if work.is_over:
            return True
        return bool(questions) and (work.key in self._parked or any(map(work.asked, questions)))

    async def _run(self, work: Work) -> None:
        try:
            room = self._live.room(work.agent)
            if isinstance(room, asyncio.Semaphore) and room.locked():
                await self._journal.commit()  # it may be long until there is room
            async with room:
                await self._half.run(work)
        except Waiting:
            self._parked.add(work.key)
        except asyncio.CancelledError:
            if not self._cancelled_itself(work):
                raise
            await self._half.fail(work, "it cancelled its own task")
        await self._live.selections.settle()
        if len(self._tasks) > 1:  # the others may take long
            await self._journal.commit()

    def _cancelled_itself(self, work: Work) -> bool:
        """Whether nobody else interrupts work: what the loop interrupts is dropped first."""
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
