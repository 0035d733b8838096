"""Turns on a board, of a reader and at a moment that suit most tests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from turnloom.assembly.logic.slices import GatheredSlice
from turnloom.assembly.spec import ChosenProvider, ContextProvider
from turnloom.board.spec import Reader
from turnloom.testing import BoardTurn
from turnloom.testing.contracts.artifacts.samples import ANN, LATER


@dataclass
class Turn(BoardTurn):
    """Ann's turn, after all that happens in a test."""

    reader: Reader = ANN
    now: datetime = LATER

    async def gather(
        self, provider: ContextProvider | ChosenProvider, **chosen: Any
    ) -> GatheredSlice:
        return await super().gather(ChosenProvider(provider, **chosen))

    async def ids(self, provider: ContextProvider) -> list[str]:
        return [item.artifact for item in (await self.gather(provider)).items]
