"""Beliefs in this process's memory."""

from collections.abc import Callable, Mapping, Sequence

from turnloom.guards.spec import Belief, Observation, Pool


def _always() -> None:
    """Nobody closes it."""


class MemoryBeliefs:
    """What is known of agents; `follows_log` says whether a log adds to it what it is told, and
    `check_open` refuses to work for a store that was closed."""

    def __init__(
        self, check_open: Callable[[], None] = _always, *, follows_log: bool = False
    ) -> None:
        self._check_open = check_open
        self.follows_log = follows_log
        self._known: dict[Pool, dict[str, Belief]] = {}
        self._seen: set[tuple[str, str, str]] = set()

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known of these agents in a pool; nothing of those without any outcome."""
        self._check_open()
        known = self._known.get(pool, {})
        return {agent: known[agent] for agent in agents if agent in known}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each at once and each once: one that is there already changes nothing."""
        self._check_open()
        self.keep(observations)

    def keep(self, observations: Sequence[Observation]) -> None:
        """Add the outcomes that are not there yet."""
        for each in observations:
            seen = (each.pool.tenant, each.run, each.event)
            if seen not in self._seen:
                self._seen.add(seen)
                self._add(each)

    def _add(self, seen: Observation) -> None:
        known = self._known.setdefault(seen.pool, {})
        if seen.decay:
            known.update({agent: each.faded(seen.decay) for agent, each in known.items()})
        known[seen.agent] = known.get(seen.agent, Belief()).after(seen.credit)

    async def aclose(self) -> None:
        """Nothing of its own is open: it is closed with the log."""
