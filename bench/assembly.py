"""The cost of assembling context compared with joining and hashing the same texts."""

import asyncio
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from time import perf_counter

from bench.measures import Measure, Rounds, Size, settle
from turnloom import RagCollection, RetrievalResult, from_literal, from_retrieval, from_state
from turnloom.assembly.events import Span
from turnloom.assembly.logic import EMPTY, View, frame, view
from turnloom.assembly.logic.frames import headed
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.service.assembling import Assembler, AssemblyResult
from turnloom.assembly.service.situations import Situation
from turnloom.assembly.spec.sources import Source

LIMIT = 10.0
SEGMENTS = 50
TEXT = "All that is known about this matter, in a hundred tokens. " * 7
NOTHING_SAID = Span(0, 0, 0, 0, EMPTY)


class Library(RagCollection):
    pass


def texts_of(turn: int, changes: bool) -> list[str]:
    first = f"{turn} {TEXT}" if changes else TEXT
    return [first, *(f"{n} {TEXT}" for n in range(1, SEGMENTS))]


class Agent:
    """Turns of an agent: context from state, literals and searches, assembled into a frame."""

    def __init__(self) -> None:
        self._assembler = Assembler([_source(n) for n in range(SEGMENTS)], Estimate())
        self._seen: tuple[AssemblyResult, View] | None = None

    async def turn(self, number: int, texts: Sequence[str]) -> None:
        async def search(
            collection: type[RagCollection], query: str, *more: object
        ) -> Sequence[RetrievalResult]:
            return [RetrievalResult(texts[int(query)], 0.9, query)]

        state = {f"text{n}": text for n, text in enumerate(texts)}
        assembled = await self._assembler.assemble(Situation(number, state=state, search=search))
        as_in = 1 if self._seen is not None and self._seen[0] is assembled else 0
        if self._seen is None or not as_in:
            shown = view(headed(assembled.pieces), assembled.context.withheld)
            self._seen = assembled, shown
        frame(number, "agent", self._seen[1], NOTHING_SAID, as_in, {})


def _source(n: int) -> Source:
    """One of three kinds of sources that do not change between turns."""
    if n % 3 == 0:
        return from_state(f"text{n}")
    return from_literal(f"{n} {TEXT}") if n % 3 == 1 else from_retrieval(Library, str(n))


def measure(size: Size, root: Path) -> Iterator[Measure]:
    rounds = Rounds()
    for _ in range(size.rounds):
        for case, changes in (("nothing changed", False), ("one changed", True)):
            settle()
            rounds.add(case, asyncio.run(_turns(size.window, changes)))
        settle()
        rounds.add("join", _joined(size.window))
    for case, limit in (("nothing changed", LIMIT), ("one changed", None)):
        cost, ratio = rounds.least(case) * 1e6, rounds.ratio(case, "join")
        told = f"{SEGMENTS} segments, {case}"
        yield Measure("assembly", told, cost, "µs/frame", "join and hash", ratio, limit)


async def _turns(turns: int, changes: bool) -> float:
    agent = Agent()
    await agent.turn(0, texts_of(0, changes))
    given = [texts_of(turn, changes) for turn in range(1, turns + 1)]
    begin = perf_counter()
    for turn, texts in enumerate(given, 1):
        await agent.turn(turn, texts)
    return (perf_counter() - begin) / turns


def _joined(turns: int) -> float:
    texts = texts_of(0, False)
    begin = perf_counter()
    for _ in range(turns):
        blake2b("\n\n".join(texts).encode(), digest_size=12).hexdigest()
    return (perf_counter() - begin) / turns
