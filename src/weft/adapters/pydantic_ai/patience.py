"""How long a model is waited for, and how often it is asked again."""

from dataclasses import dataclass

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

# What may be gone when the same request is made again.
PASSING = (
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    TimeoutError,
    UnexpectedModelBehavior,
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

    def attempts(self) -> AsyncRetrying:
        """Calls a function until it succeeds, or fails in a way that will not pass."""
        return AsyncRetrying(
            stop=stop_after_attempt(1 + self.retries),
            wait=self._wait,
            retry=retry_if_exception(self._may_pass),
            reraise=True,
        )

    def _may_pass(self, error: BaseException) -> bool:
        is_passing = isinstance(error, PASSING) and not isinstance(error, ContentFilterError)
        return is_passing and _asked_pause(error) <= self.longest_pause

    def _wait(self, state: RetryCallState) -> float:
        grown = wait_random_exponential(self.pause, self.longest_pause)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(_asked_pause(error), grown)


def _asked_pause(error: BaseException | None) -> float:
    """The seconds that a provider asks to be left alone for."""
    return getattr(error, "retry_after", None) or 0.0
