"""Apps in which time obeys."""

from dataclasses import replace
from typing import TYPE_CHECKING

from weft import Weft
from weft.adapters.inline import InlineScheduler
from weft.runtime.service.runs import Runs
from weft.testing import FakeClock
from weft.wiring.parts import world

if TYPE_CHECKING:
    from weft.wiring import Parts


class Timed(Weft):
    """An app in which time passes when it is told to."""

    def __init__(self, store: str) -> None:
        super().__init__(store=store)
        self.clock = FakeClock()

    def _open(self) -> "Parts":
        is_there = self._parts is not None
        parts = super()._open()
        if not is_there:
            outside = world(
                parts.store, parts.artifacts, parts.beliefs, parts.documents, parts.definitions
            )
            timed = replace(outside, clock=self.clock, scheduler=InlineScheduler(self.clock))
            parts = self._parts = replace(parts, runs=Runs(timed))
        return parts
