"""What a writer remembers of runs, so that an append to a run it knows asks the file nothing."""

from collections.abc import Collection, Iterable, Mapping

from turnloom.log.spec import RunKey

# How many runs are remembered, and how many ids of events over all of them.
RUNS = 10_000
IDS = 500_000


class RunEnd:
    """Where a run ends, how it stands there, the digest of its last batch, and the ids of its
    events up to a position that may lie before that."""

    __slots__ = ("digest", "ids", "known", "n", "position", "status")

    def __init__(self, n: int) -> None:
        self.n = n
        self.position = 0
        self.status: str | None = None
        self.digest = b""
        self.known = 0
        self.ids: set[str] = set()


class Places:
    """The places of runs. When there are too many, all are forgotten but the one in use.

    A run that is longer than there is room for makes room for as much again, or it and its
    neighbours would be looked up in turn, over and over.
    """

    def __init__(self, ids: int = IDS, runs: int = RUNS) -> None:
        self._ids = ids
        self._runs = runs
        self._places: dict[RunKey, RunEnd] = {}
        self._held = 0
        self._room = ids
        # The place of a run, if it is remembered.
        self.get = self._places.get

    @property
    def held(self) -> int:
        """How many ids are remembered."""
        return self._held

    def add(self, run: RunKey, n: int) -> RunEnd:
        """Remember a run of which nothing is known but its number."""
        self.forget(run)
        place = self._places[run] = RunEnd(n)
        if len(self._places) > self._runs:
            self._keep_only(run, place)
        return place

    def learn(self, run: RunKey, place: RunEnd, ids: Collection[str]) -> None:
        """Remember that these ids stand in a run."""
        self._held -= len(place.ids)
        place.ids.update(ids)
        self._held += len(place.ids)
        if self._held > self._room:
            self._keep_only(run, place)

    def extend(self, run: RunKey, place: RunEnd, ids: Collection[str], digest: bytes) -> None:
        """Remember that a run got a batch of these ids, none of which it had."""
        # Whoever is interrupted in here knows too many ids, never too few.
        place.ids.update(ids)
        self._held += len(ids)
        place.position = place.known = place.position + len(ids)
        place.digest = digest
        if self._held > self._room:
            self._keep_only(run, place)

    def forget(self, run: RunKey) -> None:
        """Remember a run no more."""
        place = self._places.pop(run, None)
        if place:
            self._held -= len(place.ids)

    def take(self, runs: Iterable[RunKey]) -> dict[RunKey, RunEnd]:
        """What is remembered of some runs, for somebody else; it is forgotten here."""
        taken = {run: place for run in runs if (place := self.get(run))}
        for run in taken:
            self.forget(run)
        return taken

    def put(self, places: Mapping[RunKey, RunEnd]) -> None:
        """Remember what somebody else knew of runs."""
        for run, place in places.items():
            self.forget(run)
            self._places[run] = place
            self._held += len(place.ids)

    def _keep_only(self, run: RunKey, place: RunEnd) -> None:
        self._places.clear()
        self._places[run] = place
        self._held = len(place.ids)
        self._room = max(self._ids, 2 * self._held)
