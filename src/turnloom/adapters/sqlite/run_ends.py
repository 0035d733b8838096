"""A writer's cache of run ends, so that appends to known runs need no query."""

from collections.abc import Collection, Iterable, Mapping, Set

from turnloom.log.spec import RunKey

# The maximum number of cached runs, and of event ids in all of them.
RUNS = 10_000
IDS = 500_000


class RunEnd:
    """The position of a run's last event, its status, the digest of its last batch, and the
    ids of its events up to `known`, which may be less.

    The ids in `shared` are also those of branches, and never change.
    """

    __slots__ = ("digest", "frozen", "ids", "known", "n", "position", "shared", "status")

    def __init__(self, n: int) -> None:
        self.n = n
        self.position = 0
        self.status: str | None = None
        self.digest = b""
        self.known = 0
        self.ids: set[str] = set()
        self.shared: tuple[Set[str], ...] = ()
        # How many of the shared ids count as those of this run.
        self.frozen = 0

    @property
    def id_count(self) -> int:
        """The number of ids that are cached for this run."""
        return len(self.ids) + self.frozen

    def taken(self, ids: Set[str]) -> set[str]:
        """Those of some ids that are among the known ones."""
        return {each for each in ids if each in self.ids or any(each in s for s in self.shared)}

    def freeze(self) -> tuple[Set[str], ...]:
        """The known ids, as sets that never change: a branch shares them."""
        if self.ids:
            self.shared, self.frozen = (*self.shared, self.ids), self.id_count
            self.ids = set()
        return self.shared


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
        self._id_count -= end.id_count
        end.ids.update(ids)
        self._id_count += end.id_count
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
            self._id_count -= end.id_count

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
            self._id_count += end.id_count

    def _keep_only(self, run: RunKey, end: RunEnd) -> None:
        self._ends.clear()
        self._ends[run] = end
        self._id_count = end.id_count
        self._limit = max(self._ids, 2 * self._id_count)
