"""Situations of turns, with a record and a collection in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from turnloom import RagCollection, RetrievalResult
from turnloom.assembly.events import ContextGathered, RetrievalSearched
from turnloom.assembly.logic.frames import texts_of
from turnloom.assembly.logic.retrieval import found_texts
from turnloom.assembly.service.situations import Situation
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.testing import InMemorySearch
from turnloom.variables.logic.exposure import VariableValues


class Library(RagCollection):
    name = "library"


@dataclass
class Run:
    """A run in memory: what was done once is on record, and read from there."""

    search: InMemorySearch = field(default_factory=InMemorySearch)
    record: dict[str, Sequence[Fact]] = field(default_factory=dict[str, Sequence[Fact]])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    turn: int = 0

    async def once(self, key: str, effect: Effect) -> Sequence[Fact]:
        if key not in self.record:
            facts = self.record[key] = await effect()
            for fact in facts:
                if isinstance(fact, RetrievalSearched):
                    self.texts |= found_texts(fact)
                elif isinstance(fact, ContextGathered):
                    self.texts |= texts_of(fact)
        return self.record[key]

    async def once_in_turn(self, key: str, effect: Effect) -> Sequence[Fact]:
        return await self.once(f"t{self.turn}/{key}", effect)

    async def found(
        self, collection: type[RagCollection], *sought: Any
    ) -> Sequence[RetrievalResult]:
        assert collection is Library
        return await self.search.search(*sought)

    def next(self, **given: Any) -> Situation:
        """The situation of the next turn."""
        self.turn += 1
        own = {
            "turn": self.turn,
            "agent": "ann",
            "texts": self.texts,
            "search": self.found,
            "in_run": self.once,
            "in_turn": self.once_in_turn,
        }
        return Situation(**{**own, **given})

    def facts(self, kind: type[Fact]) -> list[Any]:
        """What is on record of a kind."""
        return [fact for facts in self.record.values() for fact in facts if isinstance(fact, kind)]


def values(absent: dict[str, str] | None = None, **now: Any) -> VariableValues:
    return VariableValues(now, absent or {}, {})
