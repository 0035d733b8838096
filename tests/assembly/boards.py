"""Turns on a board, of a reader and at a moment that suit most tests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from turnloom.assembly.logic.slices import Gathered
from turnloom.assembly.spec import Chosen, ContextProvider
from turnloom.board.spec import Reader
from turnloom.testing import BoardTurn
from turnloom.testing.contracts.artifacts.samples import ANN, LATER


@dataclass
class Turn(BoardTurn):
    """Ann's turn, after all that happens in a test."""

    reader: Reader = ANN
    now: datetime = LATER

    async def gather(self, provider: ContextProvider | Chosen, **chosen: Any) -> Gathered:
        return await super().gather(Chosen(provider, **chosen))

    async def ids(self, provider: ContextProvider) -> list[str]:
        return [item.artifact for item in (await self.gather(provider)).items]
