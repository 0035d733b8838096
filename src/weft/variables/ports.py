"""What variables need from the world."""

from typing import Protocol


class Environment(Protocol):
    """The environment of the process."""

    def get(self, name: str) -> str | None:
        """The value of an environment variable, or nothing when it is unset."""
        ...
