"""Retry policy of model calls."""

from collections.abc import Callable
from datetime import UTC, datetime

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from turnloom.agents.logic.model_errors import asked_pause, describe
from turnloom.agents.spec import Patience, Task


def attempts(
    task: Task,
    patience: Patience,
    may_pass: Callable[[BaseException], bool],
    describe: Callable[[BaseException, Patience], str] = describe,
) -> AsyncRetrying:
    """Retry a call while its errors are transient and the requested pause is short enough. Each
    attempt that another follows is recorded with the task."""

    def is_tried_again(error: BaseException) -> bool:
        return may_pass(error) and asked_pause(error, _now()) <= patience.longest_pause

    def wait(state: RetryCallState) -> float:
        grown = wait_random_exponential(patience.pause, patience.longest_pause)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(asked_pause(error, _now()), grown)

    async def record(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if error is not None:
            message = describe(error, patience)
            await task.retry(type(error).__name__, message, state.upcoming_sleep)

    return AsyncRetrying(
        stop=stop_after_attempt(1 + patience.retries),
        wait=wait,
        retry=retry_if_exception(is_tried_again),
        before_sleep=record,
        reraise=True,
    )


def _now() -> datetime:
    """The current time, to compute the pause until a date that a provider names."""
    return datetime.now(UTC)  # noqa: TID251 - engines are made by users, who have no Clock port
