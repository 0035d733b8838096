"""Stand-ins for the world that do as they are told."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta


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

    def token(self) -> str:
        """The next word."""
        self._count += 1
        return f"{self._prefix}{self._count}"


class FakeEnvironment:
    """An environment that holds what it is given."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values = dict(values or {})

    def get(self, name: str) -> str | None:
        """The value of a variable, or nothing when it is unset."""
        return self.values.get(name)
