"""Stand-ins for the world that do as they are told."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from weft.errors import UsageError
from weft.kernel.values import Json
from weft.variables.logic.paths import belongs, steps, value_at
from weft.variables.ports import TENANT_FIELDS, Lookup


class FakeClock:
    """A clock that moves by a fixed step each time it is read, and when it is told to."""

    def __init__(self, start: datetime | None = None, step: timedelta = timedelta(0)) -> None:
        self.time = start or datetime(2026, 1, 1, tzinfo=UTC)
        self.step = step

    def now(self) -> datetime:
        """The instant the clock shows."""
        self.time += self.step
        return self.time

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.time += by


class FakeEntropy:
    """Chance without chance: the same words in the same order."""

    def __init__(self, prefix: str = "run") -> None:
        self._prefix = prefix
        self._count = 0
        self._draws = 0

    def token(self) -> str:
        """The next word."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def below(self, limit: int) -> int:
        """The numbers below the limit, one after the other."""
        self._draws += 1
        return (self._draws - 1) % limit


class FakeEnvironment:
    """An environment that holds what it is given."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values = dict(values or {})

    def get(self, name: str) -> str | None:
        """The value of a variable, or nothing when it is unset."""
        return self.values.get(name)


class FakeDocuments:
    """Documents in memory, the last added being the newest."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, str], list[Mapping[str, Json]]] = defaultdict(list)
        self._closed = False

    def add(
        self, collection: str, *documents: Mapping[str, Json], database: str | None = None
    ) -> None:
        """Put documents into a collection."""
        self._kept[database, collection] += documents

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The document last added that fits, or none."""
        await self.index(lookup)
        names = steps(lookup.key)
        for document in reversed(self._kept.get((lookup.database, lookup.collection), ())):
            if value_at(document, names) == lookup.value:
                if belongs(document, TENANT_FIELDS, lookup.tenant):
                    return document
        return None

    async def index(self, lookup: Lookup) -> bool:
        """Refuse what every store refuses; whether there is something to index."""
        if self._closed:
            raise UsageError("The documents are closed, so nothing can be looked up any more.")
        steps(lookup.key)
        return (lookup.database, lookup.collection) in self._kept

    async def aclose(self) -> None:
        """Refuse everything from now on; a second call changes nothing."""
        self._closed = True
