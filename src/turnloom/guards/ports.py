"""What guards need from the world."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from turnloom.guards.spec import Belief, Observation, Pool


class BeliefStore(Protocol):
    """What is known of agents, over runs and processes; a pool belongs to a tenant."""

    @property
    def follows_log(self) -> bool:
        """Whether what the log is told of outcomes is here at once, in the same transaction."""
        ...

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known of these agents in a pool; nothing of those without any outcome.

        Raises:
            StoreUnavailable: it cannot be read now.
        """
        ...

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each at once and each once: one that is there already changes nothing.

        Raises:
            StoreUnavailable: some may be there; the same may be tried again later.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what is open; a second call changes nothing."""
        ...
