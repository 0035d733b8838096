"""The machine's own clock, chance and environment."""

import os
import secrets
from datetime import UTC, datetime

# Digits and letters that nobody mistakes for another: without 0, 1, l and o.
ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"
LENGTH = 26
# A letter for every byte: the alphabet has 32, so each is as likely as the others.
LETTERS = (ALPHABET * 8).encode()


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""
        return datetime.now(UTC)


class SystemEntropy:
    """The chance of this machine's operating system."""

    def token(self) -> str:
        """A word of 26 letters and digits, 130 bits of chance."""
        return secrets.token_bytes(LENGTH).translate(LETTERS).decode()

    def below(self, limit: int) -> int:
        """A number from 0 on, below the limit."""
        return secrets.randbelow(limit)


class SystemEnvironment:
    """The environment variables of this process."""

    def get(self, name: str) -> str | None:
        """The value of a variable, read now; None when it is not set."""
        return os.environ.get(name)
