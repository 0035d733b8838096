"""Stand-ins for the world that do as they are told."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from anyio import CancelScope

from turnloom.agents.spec import ToolSchema
from turnloom.errors import ToolServerError, UsageError
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import belongs, steps, value_at
from turnloom.variables.ports import TENANT_FIELDS, Lookup


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


class FakeToolServer:
    """Tools in memory; `calls` holds what was asked of them, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Json]]] = []
        self._tools: dict[str, tuple[ToolSchema, Callable[..., Awaitable[Json]]]] = {}
        self._flying: set[CancelScope] = set()
        self._closed = False

    def add(
        self, schema: ToolSchema, answer: Callable[[Mapping[str, Json]], Awaitable[Json]]
    ) -> None:
        """Offer a tool; `answer` gives what it gives, or raises `ToolServerError`."""
        self._tools[schema.name] = (schema, answer)

    async def tools(self) -> Sequence[ToolSchema]:
        """The tools that were added."""
        self._refuse_if_closed()
        return [schema for schema, _ in self._tools.values()]

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """What the tool's function gives."""
        self._refuse_if_closed()
        if tool not in self._tools:
            raise ToolServerError(f"There is no tool {tool!r}. Add it to the server.")
        self.calls.append((tool, dict(arguments)))
        with CancelScope() as scope:
            self._flying.add(scope)
            try:
                return await self._tools[tool][1](arguments)
            finally:
                self._flying.discard(scope)
        raise ToolServerError(f"The server was closed before tool {tool!r} answered.")

    async def aclose(self) -> None:
        """End calls in flight and refuse later ones; a second call changes nothing."""
        self._closed = True
        for scope in self._flying:
            scope.cancel()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise UsageError("The server was closed, so it cannot be asked any more.")
