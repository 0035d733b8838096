"""What is known of candidates, and where it comes from."""

from typing import NamedTuple


class Pool(NamedTuple):
    """What evidence belongs together: of a tenant, in a workflow, in a category."""

    tenant: str
    workflow: str
    category: str


class Belief(NamedTuple):
    """The evidence on one agent: every outcome adds one, split between the two."""

    successes: float = 0.0
    failures: float = 0.0

    @property
    def observations(self) -> float:
        """How many outcomes this comes from, those that faded counting less."""
        return self.successes + self.failures

    def after(self, credit: float) -> "Belief":
        """The evidence with one more outcome."""
        return Belief(self.successes + credit, self.failures + 1 - credit)

    def faded(self, decay: float) -> "Belief":
        """The evidence without the share that fades."""
        return Belief(self.successes * (1 - decay), self.failures * (1 - decay))


class Observation(NamedTuple):
    """One outcome, known by the event that has it: how much of a success it was, and the share of
    what its pool knew before that fades."""

    run: str
    event: str
    pool: Pool
    agent: str
    credit: float
    decay: float = 0.0
