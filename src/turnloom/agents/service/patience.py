"""How often a model is asked again."""

from collections.abc import Callable
from datetime import UTC, datetime

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from turnloom.agents.logic.trouble import asked_pause
from turnloom.agents.spec import Patience


def attempts(patience: Patience, may_pass: Callable[[BaseException], bool]) -> AsyncRetrying:
    """Calls a function until it succeeds, or fails in a way that will not pass soon enough."""

    def is_tried_again(error: BaseException) -> bool:
        return may_pass(error) and asked_pause(error, _now()) <= patience.longest_pause

    def wait(state: RetryCallState) -> float:
        grown = wait_random_exponential(patience.pause, patience.longest_pause)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(asked_pause(error, _now()), grown)

    return AsyncRetrying(
        stop=stop_after_attempt(1 + patience.retries),
        wait=wait,
        retry=retry_if_exception(is_tried_again),
        reraise=True,
    )


def _now() -> datetime:
    """The present, which a provider may name a date after: no more comes of it than a pause."""
    return datetime.now(UTC)  # noqa: TID251 - engines are made by users, who have no Clock port
