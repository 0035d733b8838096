"""Fakes of clock, randomness, environment, documents and tool servers."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from anyio import CancelScope

from turnloom.agents.spec import ToolSchema
from turnloom.errors import ToolServerError, UsageError
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import belongs, meets, steps
from turnloom.variables.ports import TENANT_FIELDS, Lookup


class FakeClock:
    """A clock that advances by a fixed step at each reading, and by `advance`."""

    def __init__(self, start: datetime | None = None, step: timedelta = timedelta(0)) -> None:
        self.time = start or datetime(2026, 1, 1, tzinfo=UTC)
        self.step = step

    def now(self) -> datetime:
        """The present instant of this clock."""
        self.time += self.step
        return self.time

    def advance(self, by: timedelta) -> None:
        """Advance the clock."""
        self.time += by


class FakeEntropy:
    """Deterministic randomness: the same tokens and numbers in the same order."""

    def __init__(self, prefix: str = "run") -> None:
        self._prefix = prefix
        self._count = 0
        self._draws = 0

    def token(self) -> str:
        """The next token: the prefix and a number."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def below(self, limit: int) -> int:
        """The numbers from 0 up to the limit, in order and then again."""
        self._draws += 1
        return (self._draws - 1) % limit


class FakeEnvironment:
    """An environment with fixed variables."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values = dict(values or {})

    def get(self, name: str) -> str | None:
        """The value of a variable, or None if it is unset."""
        return self.values.get(name)


class FakeDocuments:
    """Documents in memory; the last one added is the newest."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, str], list[Mapping[str, Json]]] = defaultdict(list)
        self._closed = False

    def add(
        self, collection: str, *documents: Mapping[str, Json], database: str | None = None
    ) -> None:
        """Add documents to a collection."""
        self._kept[database, collection] += documents

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The newest document that matches, or None."""
        await self.index(lookup)
        for document in reversed(self._kept.get((lookup.database, lookup.collection), ())):
            if meets(document, lookup.conditions):
                if belongs(document, TENANT_FIELDS, lookup.tenant):
                    return document
        return None

    async def index(self, lookup: Lookup) -> bool:
        """Check the lookup; returns whether the collection exists."""
        if self._closed:
            raise UsageError("The documents are closed. Create new `FakeDocuments`.")
        for key, _ in lookup.conditions:
            steps(key)
        return (lookup.database, lookup.collection) in self._kept

    async def aclose(self) -> None:
        """Close the store; a second call does nothing."""
        self._closed = True


class FakeToolServer:
    """Tools in memory; `calls` lists the calls in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Json]]] = []
        self._tools: dict[str, tuple[ToolSchema, Callable[..., Awaitable[Json]]]] = {}
        self._in_flight: set[CancelScope] = set()
        self._closed = False

    def add(
        self, schema: ToolSchema, answer: Callable[[Mapping[str, Json]], Awaitable[Json]]
    ) -> None:
        """Add a tool; `answer` returns its result, or raises `ToolServerError`."""
        self._tools[schema.name] = (schema, answer)

    async def tools(self) -> Sequence[ToolSchema]:
        """The tools that were added."""
        self._refuse_if_closed()
        return [schema for schema, _ in self._tools.values()]

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """The result of the tool's function."""
        self._refuse_if_closed()
        if tool not in self._tools:
            raise ToolServerError(f"Unknown tool {tool!r}. Add it to the server.")
        self.calls.append((tool, dict(arguments)))
        with CancelScope() as scope:
            self._in_flight.add(scope)
            try:
                return await self._tools[tool][1](arguments)
            finally:
                self._in_flight.discard(scope)
        raise ToolServerError(f"The tool server was closed before tool {tool!r} returned.")

    async def aclose(self) -> None:
        """End calls in flight and reject later ones; a second call does nothing."""
        self._closed = True
        for scope in self._in_flight:
            scope.cancel()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise UsageError("The tool server is closed. Create a new `FakeToolServer`.")
