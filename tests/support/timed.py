"""Apps in which time obeys."""

from turnloom import Loom
from turnloom.adapters.inline import InlineScheduler
from turnloom.testing import FakeClock


class Timed(Loom):
    """An app in which time passes when it is told to."""

    def __init__(self, store: str) -> None:
        self.clock = FakeClock()
        super().__init__(store=store, clock=self.clock, scheduler=InlineScheduler(self.clock))
