"""Token counts of OpenAI's models. Needs the extra `tokens`."""

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
    """Counts tokens by a vocabulary of the package."""

    version = "1"

    def __init__(self, vocabulary: str = "o200k_base") -> None:
        self.name = vocabulary
        try:
            self._encode = _encoder(vocabulary)
        except ValueError as error:
            raise UsageError(
                f"Unknown vocabulary {vocabulary!r}: {error}. Use 'o200k_base'."
            ) from error

    def count(self, text: str) -> int:
        """The number of tokens in a text; special tokens count as plain text."""
        whole = text.encode("utf-8", "replace").decode()
        return len(self._encode(whole))


@cache
def _encoder(vocabulary: str) -> Callable[[str], Sequence[int]]:
    """The encoder of a vocabulary, cached: loading takes a tenth of a second."""
    return Tokenizer.from_pretrained(vocabulary).encode_ordinary
