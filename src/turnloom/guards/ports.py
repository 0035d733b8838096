"""Ports of guards."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from turnloom.guards.spec import Belief, Observation, Pool


class BeliefStore(Protocol):
    """The beliefs about agents, across runs and processes; a pool belongs to a tenant."""

    @property
    def follows_log(self) -> bool:
        """Whether outcomes appended to the log are stored here in the same transaction."""
        ...

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """The beliefs about these agents in a pool; agents without outcomes are left out.

        Raises:
            StoreUnavailable: the store cannot be read now.
        """
        ...

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each atomically and once: one that is already stored changes nothing.

        Raises:
            StoreUnavailable: some may be stored; the caller may retry the same call.
        """
        ...

    async def aclose(self) -> None:
        """Close the store; a second call does nothing."""
        ...
