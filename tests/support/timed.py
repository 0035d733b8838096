"""Apps in which time obeys."""

from weft import Weft
from weft.adapters.inline import InlineScheduler
from weft.testing import FakeClock


class Timed(Weft):
    """An app in which time passes when it is told to."""

    def __init__(self, store: str) -> None:
        self.clock = FakeClock()
        super().__init__(store=store, clock=self.clock, scheduler=InlineScheduler(self.clock))
