"""How often a model is asked again."""

from functools import partial

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from weft.agents.logic.trouble import asked_pause, may_pass
from weft.agents.spec import Patience


def attempts(patience: Patience) -> AsyncRetrying:
    """Calls a function until it succeeds, or fails in a way that will not pass."""

    def wait(state: RetryCallState) -> float:
        grown = wait_random_exponential(patience.pause, patience.longest_pause)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(asked_pause(error), grown)

    return AsyncRetrying(
        stop=stop_after_attempt(1 + patience.retries),
        wait=wait,
        retry=retry_if_exception(partial(may_pass, patience)),
        reraise=True,
    )
