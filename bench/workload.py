"""The measured workflows, written to folders, and the engines that answer in them."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import process_time
from typing import Any

from turnloom import Answer, Run, Task

AGENTS = ("Ann", "Ben")
FACTS = 10
PLAIN = Answer("The next part of the report is ready, and nothing in it is decided. " * 4)

# Longer than any measured run; without it, a failed run would block forever.
PATIENCE = 120.0


def write_talk(root: Path, turns: int, idle: int) -> str:
    """Two agents that hand off to each other, with ten variables that either may set.

    Both see the ten. `idle` more variables are declared, which are neither set nor shown.
    """
    facts = {f"fact_{n}": _derived(n) for n in range(FACTS)}
    rest = {f"idle_{n}": _flag([]) for n in range(idle)}
    exposures = {agent: {"variables": list(facts)} for agent in AGENTS}
    context = {"definitions": facts | rest, "agents": exposures}
    rules = [_after_work(source, target) for source, target in (AGENTS, AGENTS[::-1])]
    return _write(
        root,
        orchestrator={"initial_agent": AGENTS[0], "max_turns": turns},
        agents={"agents": {agent: {"system_message": _instructions(agent)} for agent in AGENTS}},
        handoffs={"handoff_rules": rules},
        context_variables={"context_variables": context},
    )


def write_wait(root: Path) -> str:
    """One agent that speaks and hands off to the user."""
    return _write(
        root,
        orchestrator={"initial_agent": AGENTS[0], "human_in_the_loop": True},
        agents={"agents": {AGENTS[0]: {"system_message": _instructions(AGENTS[0])}}},
        handoffs={"handoff_rules": [_after_work(AGENTS[0], "user")]},
    )


def fact_answer(number: int) -> Answer:
    """The answer that sets one of the ten variables."""
    return Answer(f"FACT {number}")


def _derived(number: int) -> dict[str, Any]:
    said = fact_answer(number).text
    match = ({"equals": said}, {"contains": said}, {"regex": f"^{said}$"})[number % 3]
    return _flag([{"type": "agent_text", "agent": agent, "match": match} for agent in AGENTS])


def _flag(triggers: list[dict[str, Any]]) -> dict[str, Any]:
    source = {"type": "derived", "default": False, "triggers": triggers}
    return {"type": "boolean", "source": source}


def _after_work(source: str, target: str) -> dict[str, str]:
    return {"source_agent": source, "target_agent": target, "handoff_type": "after_work"}


def _instructions(agent: str) -> str:
    return f"You are {agent}. You write a report together, one part at a time, and hand over."


def _write(root: Path, **parts: Any) -> str:
    root.mkdir()
    for part, declared in parts.items():
        (root / f"{part}.json").write_text(json.dumps(declared, indent=1))
    return str(root)


class Stopwatch:
    """Answers at once, and records the CPU time of all threads at given turns."""

    def __init__(self, turns: Iterable[int], answers: Mapping[int, Answer] | None = None) -> None:
        self.at = dict.fromkeys(turns, 0.0)
        self._last = max(self.at, default=0)
        self._answers = answers or {}
        self._done = asyncio.Event()

    async def __call__(self, task: Task) -> Answer:
        turn = task.turn
        if turn in self.at:
            self.at[turn] = process_time()
            if turn == self._last:
                self._done.set()
        return self._answers.get(turn, PLAIN)

    async def done(self) -> None:
        """Wait until the last of the turns began."""
        async with asyncio.timeout(PATIENCE):
            await self._done.wait()

    async def follow(self, run: Run) -> None:
        """Follow nothing."""


class Followed(Stopwatch):
    """A stopwatch with a follower, which must catch up before the time is recorded."""

    def __init__(self, turns: Iterable[int]) -> None:
        super().__init__(turns)
        self._seen = {turn: asyncio.Event() for turn in self.at}

    async def __call__(self, task: Task) -> Answer:
        if task.turn in self._seen:
            await self._seen[task.turn].wait()
        return await super().__call__(task)

    async def follow(self, run: Run) -> None:
        """Read the events of a run as they arrive."""
        async for event in run.events():
            if event.kind == "model.called" and event.data.turn in self._seen:
                self._seen[event.data.turn].set()


class Halt(Stopwatch):
    """A stopwatch that never answers in its last turn, so that the run stops in mid-turn."""

    async def __call__(self, task: Task) -> Answer:
        answer = await super().__call__(task)
        if task.turn == self._last:
            await asyncio.Event().wait()
        return answer
