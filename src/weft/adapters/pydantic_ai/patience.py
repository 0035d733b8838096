"""How often a model is asked again."""

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

from weft.agents.spec import Patience

# What may be gone when the same request is made again.
PASSING = (
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    TimeoutError,
    UnexpectedModelBehavior,
)


def attempts(patience: Patience) -> AsyncRetrying:
    """Calls a function until it succeeds, or fails in a way that will not pass."""

    def may_pass(error: BaseException) -> bool:
        is_passing = isinstance(error, PASSING) and not isinstance(error, ContentFilterError)
        return is_passing and _asked_pause(error) <= patience.longest_pause

    def wait(state: RetryCallState) -> float:
        grown = wait_random_exponential(patience.pause, patience.longest_pause)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(_asked_pause(error), grown)

    return AsyncRetrying(
        stop=stop_after_attempt(1 + patience.retries),
        wait=wait,
        retry=retry_if_exception(may_pass),
        reraise=True,
    )


def _asked_pause(error: BaseException | None) -> float:
    """The seconds that a provider asks to be left alone for."""
    return getattr(error, "retry_after", None) or 0.0
