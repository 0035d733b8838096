"""Which run a correlation is at."""

from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data
from turnloom.log.events import ENDS
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey

# How many correlations are remembered with the run that they are at.
REMEMBERED = 10_000


class Correlations:
    """The runs of the correlations of a board: one after the other, each begun when something is
    published and the one before has ended. What is collected for a subscription, over all of them,
    is at its runs in the same way."""

    def __init__(self, board: str, tenant: str, log: EventLog) -> None:
        self._board = board
        self._tenant = tenant
        self._log = log
        self._generations: dict[str, int] = {}

    async def run_of(self, correlation: str, plan: str) -> tuple[str, bool]:
        """The run that a correlation is at under a plan, and whether it goes on; else the id of its
        next one."""
        seed = as_data([self._board, correlation, plan])
        number, last = await self._latest(seed, self._generations.pop(seed, 0))
        self._remember(seed, number)
        if not number and await self._is_its_own(correlation, plan):
            return correlation, True
        is_going = last is not None and last.kind not in ENDS
        return _generation(self._board, seed, number if is_going else number + 1), is_going

    async def _is_its_own(self, correlation: str, plan: str) -> bool:
        """Whether a correlation is that of a run which began without one, and which goes on."""
        ends = await self._log.ends(RunKey(self._tenant, correlation))
        if ends is None:
            return False
        first, last = ends
        return (
            (first.data.workflow, first.data.definition) == (self._board, plan)
            and first.data.correlation == correlation
            and last.kind not in ENDS
        )

    async def _latest(self, seed: str, number: int) -> tuple[int, Event | None]:
        """The number of the last run of a correlation from one that is there on, or 0, and that
        run's last event; found in ever longer steps."""
        last = await self._last(seed, number) if number else None
        step = 1
        while True:
            found = await self._last(seed, number + step)
            if found is not None:
                number, last, step = number + step, found, step * 2
            elif step == 1:
                return number, last
            else:
                step = 1

    async def _last(self, seed: str, number: int) -> Event | None:
        run = RunKey(self._tenant, _generation(self._board, seed, number))
        ends = await self._log.ends(run)
        return ends[1] if ends else None

    def _remember(self, seed: str, generation: int) -> None:
        self._generations[seed] = generation
        if len(self._generations) > REMEMBERED:
            del self._generations[next(iter(self._generations))]


def _generation(board: str, seed: str, number: int) -> str:
    return f"{board}-{digest(f'{seed}{number}')}"
