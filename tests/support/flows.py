"""Runs of flows over several lives of a program, each killed somewhere, the last one not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import BaseModel

from tests.support.plays import every
from tests.support.programs import Program, make_world, mortal
from turnloom import Flow, Outcome
from turnloom.log.events import ENDS
from turnloom.log.spec import Event
from turnloom.testing import Fuse, Killed

# What a person says to a question: an answer, the end of the run, or nothing, so that time passes.
Person = Callable[[Any], Any]

# How often a run comes to rest before it is said to hang.
RESTS = 100

# How the id of a timer begins that an attempt waits for.
RETRY = "flow/retry/"


@dataclass(frozen=True)
class Cancel:
    """A person's answer that ends the run."""

    by: str
    reason: str


class Hangs(AssertionError):
    """The run rests, and neither time nor a person lets it continue."""


def nobody(question: Any) -> Any:
    """Answers nothing."""
    return None


class FlowLives:
    """Runs of one flow in one world; `fuse` is that of the program that lives now."""

    def __init__(
        self, flow: Flow[Any], state: BaseModel, person: Person = nobody, store: Any = None
    ) -> None:
        self._flow = flow
        self._state = state
        self._person = person
        self._world = make_world(store=store)
        self.fuse = Fuse()
        self.clock = self._world.clock

    async def live(self, *kills: int) -> list[Event]:
        """The log of a run after as many lives; each ends when its fuse is burnt."""
        run = await self.begin()
        for points in kills:
            try:
                await self.life(run, Fuse(points))
            except Killed:
                continue
        return await self.life(run, Fuse())

    async def begin(self) -> str:
        """A run begun and not yet driven."""
        async with Program(self._world) as program:
            run = await program.app.start(self._flow, self._state, user_id="u1")
        return run.id

    async def life(self, run: str, fuse: Fuse) -> list[Event]:
        """Let a program drive a run to its end, a person answering or time passing; its log.

        Raises:
            Hangs: it waits for a person who does not answer.
        """
        self.fuse = fuse
        async with mortal(self._world, fuse) as program:
            program.app.register_flow(self._flow)
            for _ in range(RESTS):
                due = await program.drive(run)
                events = await self.log(run)
                if events[-1].kind in ENDS:
                    return events
                if not await self._answer(program, run):
                    if due is None:
                        raise Hangs(run)
                    self.clock.time = max(self.clock.time, due)
        raise AssertionError(f"it never ends: {[event.id for event in events[-9:]]}")

    async def _answer(self, program: Program, run: str) -> bool:
        asked = await program.app.handle(run).question()
        said = self._person(asked) if asked else None
        if asked is None or said is None:
            return False
        if isinstance(said, Cancel):
            await program.cancel(run, said.by, said.reason)
        else:
            await program.answer(run, said, asked.id)
        return True

    async def rest(self, run: str) -> None:
        """Let another program drive a run until it rests."""
        async with self._program() as program:
            await program.drive(run)

    async def answer(self, run: str, question: str | None, value: Any) -> None:
        """Let another program answer, and drive the run until it rests."""
        async with self._program() as program:
            await program.answer(run, value, question)

    async def leave_answer(self, run: str, question: str | None, value: Any) -> None:
        """Let another program answer, as the boss, that drives nothing."""
        async with self._program() as program:
            await program.app.handle(run).answer(question, value, user_id="boss")

    async def outcome(self, run: str) -> Outcome:
        """What became of a run, as a program sees it that drives nothing."""
        async with self._program() as program:
            return await program.app.handle(run).outcome()

    async def log(self, run: str) -> list[Event]:
        """What the log of a run holds."""
        return await self._world.read(run)

    def _program(self) -> Program:
        program = Program(self._world)
        program.app.register_flow(self._flow)
        return program


def undone(events: Sequence[Event]) -> list[str]:
    """The places that were made up for, in order."""
    return [fact.place for fact in every(events, "step.compensated")]


def tale(events: Sequence[Event]) -> dict[str, list[Any]]:
    """What a log says of each line of work, and of the rest.

    Paths go on side by side: which of their steps has which number, and what an event follows, is
    not theirs to say; nor is how often the run comes to rest.
    """
    places = dict(_places(events))
    found: dict[str, list[Any]] = {}
    for event in events:
        if event.kind in ("run.resumed", "run.paused"):
            continue
        head, slash, tail = _own(event.id).partition("/")
        place = places.get(head, "")
        data = _plain(msgspec.to_builtins(event.data))
        id = f"{place}{slash}{tail}" if place else event.id
        found.setdefault(place, []).append((id, event.kind, event.actor, data))
    found[""].sort(key=repr)
    return found


def _own(id: str) -> str:
    """An id with its step first; a timer has its step and its time at the end."""
    if id.startswith(RETRY):
        return f"s{id.removeprefix(RETRY).partition('@')[0]}/timer"
    return id


def _places(events: Sequence[Event]) -> Any:
    for fact in every(events, "step.started"):
        yield f"s{fact.number}", fact.place
        if fact.turn:
            yield f"t{fact.turn}", f"{fact.place} in attempt {fact.attempt}"


_SHIFTING = {"at", "due", "as_in", "first", "last", "number", "turn", "frame", "timer", "stack"}


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _plain(each) for name, each in data.items() if name not in _SHIFTING}
    return [_plain(each) for each in data] if isinstance(data, list | tuple) else data
