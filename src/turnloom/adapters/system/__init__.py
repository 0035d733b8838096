"""The machine's clock, random numbers and environment."""

import os
import secrets
from datetime import UTC, datetime

# Digits and letters that are easy to tell apart: without 0, 1, l and o.
ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"
LENGTH = 26
# Maps every byte to one of 32 characters, each equally likely.
LETTERS = (ALPHABET * 8).encode()


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""
        return datetime.now(UTC)


class SystemEntropy:
    """Random values from the operating system."""

    def token(self) -> str:
        """A random word of 26 letters and digits: 130 bits."""
        return secrets.token_bytes(LENGTH).translate(LETTERS).decode()

    def below(self, limit: int) -> int:
        """A random number from 0 up to, but not including, the limit."""
        return secrets.randbelow(limit)


class SystemEnvironment:
    """The environment variables of this process."""

    def get(self, name: str) -> str | None:
        """The current value of a variable; None if it is not set."""
        return os.environ.get(name)
