"""Tokens counted as OpenAI's models count them. Needs the extra `tokens`."""

from collections.abc import Callable, Sequence
from functools import cache

from turnloom.errors import UsageError

try:
    from splintr import Tokenizer
except ModuleNotFoundError as error:
    if error.name != "splintr":
        raise
    raise UsageError(
        "Counting tokens needs the package 'splintr-rs', which is not installed. "
        'Install it with: pip install "turnloom[tokens]"'
    ) from error

__all__ = ["SplintrCounter"]


class SplintrCounter:
    """Tokens of a vocabulary that the package carries."""

    version = "1"

    def __init__(self, vocabulary: str = "o200k_base") -> None:
        self.name = vocabulary
        try:
            self._encode = _encoder(vocabulary)
        except ValueError as error:
            raise UsageError(
                f"There is no vocabulary {vocabulary!r}: {error}. Try 'o200k_base'."
            ) from error

    def count(self, text: str) -> int:
        """How many tokens a text has; what looks like a special token is text like any other."""
        whole = text.encode("utf-8", "replace").decode()
        return len(self._encode(whole))


@cache
def _encoder(vocabulary: str) -> Callable[[str], Sequence[int]]:
    """What cuts texts into tokens; it takes a tenth of a second to load, and never changes."""
    return Tokenizer.from_pretrained(vocabulary).encode_ordinary
