"""Counting tokens: each text once."""

from collections import OrderedDict

from turnloom.assembly.logic.frames import counter_name
from turnloom.assembly.ports import TokenCounter
from turnloom.kernel.digests import digest

# How many counts are kept.
MOST = 10_000


class Counts:
    """Counts of tokens, kept by the digests of texts."""

    def __init__(self, counter: TokenCounter, most: int = MOST) -> None:
        self.name = counter_name(counter.name, counter.version)
        self._counter = counter
        self._most = most
        self._counts: OrderedDict[str, int] = OrderedDict()

    def __call__(self, text: str, key: str = "") -> int:
        """The tokens of a text; `key` is its digest, where that is known."""
        key = key or digest(text)
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = self._counter.count(text)
            if len(self._counts) > self._most:
                self._counts.popitem(last=False)
        return count
