"""How long a model is waited for, and how often it is asked again."""

from collections.abc import Callable
from dataclasses import dataclass

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a model may be silent, and how often it is asked again after trouble that may pass.

    The pauses between requests grow from `pause` on, by chance and at most to `longest_pause`. A
    provider that asks for a pause gets it, unless it is longer than that.
    """

    timeout: float = 120.0
    retries: int = 3
    pause: float = 0.5
    longest_pause: float = 60.0

    def attempts(self, may_pass: Callable[[BaseException], bool]) -> AsyncRetrying:
        """Calls a function until it succeeds, or fails in a way that will not pass."""

        def is_tried_again(error: BaseException) -> bool:
            return may_pass(error) and _asked_pause(error) <= self.longest_pause

        return AsyncRetrying(
            stop=stop_after_attempt(1 + self.retries),
            wait=self._wait,
            retry=retry_if_exception(is_tried_again),
            reraise=True,
        )

    def _wait(self, state: RetryCallState) -> float:
        grown = wait_random_exponential(self.pause, self.longest_pause)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(_asked_pause(error), grown)


def _asked_pause(error: BaseException | None) -> float:
    """The seconds that a provider asks to be left alone for: libraries keep them by one name."""
    return getattr(error, "retry_after", None) or 0.0
