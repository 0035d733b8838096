"""A writer's cache of run ends, so that appends to known runs need no query."""

from collections.abc import Collection, Iterable, Mapping

from turnloom.log.spec import RunKey

# The maximum number of cached runs, and of event ids in all of them.
RUNS = 10_000
IDS = 500_000


class RunEnd:
    """The position of a run's last event, its status, the digest of its last batch, and the
    ids of its events up to `known`, which may be less."""

    __slots__ = ("digest", "ids", "known", "n", "position", "status")

    def __init__(self, n: int) -> None:
        self.n = n
        self.position = 0
        self.status: str | None = None
        self.digest = b""
        self.known = 0
        self.ids: set[str] = set()


class RunEndCache:
    """Cached run ends. When the cache is full, only the one in use is kept.

    A run that exceeds the limit doubles it. Otherwise that run and others would evict each other
    again and again.
    """

    def __init__(self, ids: int = IDS, runs: int = RUNS) -> None:
        self._ids = ids
        self._runs = runs
        self._ends: dict[RunKey, RunEnd] = {}
        self._id_count = 0
        self._limit = ids
        # The end of a run, if cached.
        self.get = self._ends.get

    @property
    def id_count(self) -> int:
        """The number of cached ids."""
        return self._id_count

    def add(self, run: RunKey, n: int) -> RunEnd:
        """Cache a run with its number only."""
        self.forget(run)
        end = self._ends[run] = RunEnd(n)
        if len(self._ends) > self._runs:
            self._keep_only(run, end)
        return end

    def add_ids(self, run: RunKey, end: RunEnd, ids: Collection[str]) -> None:
        """Add known ids of a run."""
        self._id_count -= len(end.ids)
        end.ids.update(ids)
        self._id_count += len(end.ids)
        if self._id_count > self._limit:
            self._keep_only(run, end)

    def extend(self, run: RunKey, end: RunEnd, ids: Collection[str], digest: bytes) -> None:
        """Record a new batch of a run, with ids that it did not have."""
        # If this is interrupted, the cache has too many ids, never too few.
        end.ids.update(ids)
        self._id_count += len(ids)
        end.position = end.known = end.position + len(ids)
        end.digest = digest
        if self._id_count > self._limit:
            self._keep_only(run, end)

    def forget(self, run: RunKey) -> None:
        """Drop a run."""
        end = self._ends.pop(run, None)
        if end:
            self._id_count -= len(end.ids)

    def take(self, runs: Iterable[RunKey]) -> dict[RunKey, RunEnd]:
        """Move runs out of the cache, to another writer."""
        taken = {run: end for run in runs if (end := self.get(run))}
        for run in taken:
            self.forget(run)
        return taken

    def put(self, ends: Mapping[RunKey, RunEnd]) -> None:
        """Cache runs from another writer."""
        for run, end in ends.items():
            self.forget(run)
            self._ends[run] = end
            self._id_count += len(end.ids)

    def _keep_only(self, run: RunKey, end: RunEnd) -> None:
        self._ends.clear()
        self._ends[run] = end
        self._id_count = len(end.ids)
        self._limit = max(self._ids, 2 * self._id_count)
