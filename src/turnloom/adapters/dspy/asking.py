"""Single requests to a model, as those who try again want them."""

import re
from typing import Any

from dspy import LM, context
from dspy.lm15 import Request, Response
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMBillingError,
    LMError,
    LMProviderError,
    LMStreamAssemblyError,
    is_retryable_lm_error,
)

from turnloom.agents.logic import trouble
from turnloom.agents.spec import Patience
from turnloom.errors import ContextTooLarge, EngineError, TurnloomError

# What DSPy adds to the words of a provider, for those who ask by DSPy alone.
_ADVICE = re.compile(r"\n\n  (credential came from|To fix):.*", re.DOTALL)

# What DSPy says of events that it does not read.
OVERSIZED = "exceeds limit ("


async def ask(model: LM, request: Request, ear: Any = None) -> Response:
    """One request, heard by `ear` while it is answered; DSPy would keep what was shown in its
    history.

    Raises:
        LMError: the model does not answer, or refuses to.
        TimeoutError: it was silent.
    """
    with context(send_stream=ear, disable_history=True):
        try:
            return await model.acall(request)
        except LMError as error:
            if _is_silence(error):
                raise TimeoutError from error
            raise


def _is_silence(error: BaseException | None) -> bool:
    """Whether it began with a wait in vain: DSPy has no error of its own for that."""
    return error is not None and (isinstance(error, TimeoutError) or _is_silence(error.__cause__))


def is_oversized(error: LMError) -> bool:
    """Whether an event of a stream was longer than DSPy reads: 64 KiB a line, 1 MiB in all."""
    return OVERSIZED in str(error)


def may_pass(error: BaseException) -> bool:
    """Whether it may be gone when the same request is made again; a stream may have broken."""
    if isinstance(error, LMBillingError) or trouble.is_untrusted(error):
        return False
    is_cut = isinstance(error, LMStreamAssemblyError | TimeoutError)
    is_known = isinstance(error, Exception) and is_retryable_lm_error(error)
    # A provider that gives up in the middle of an answer has no status to say so.
    is_late = type(error) is LMProviderError
    if (status := trouble.status_of(error)) is not None:
        return is_known or trouble.passes(status)
    return is_cut or is_late or is_known or trouble.is_garbled(error)


def failure(error: BaseException, model: str, tried: int, patience: Patience) -> TurnloomError:
    """The error of a call whose model does not answer, in the provider's words and without DSPy's
    advice."""
    known = isinstance(error, ContextWindowExceededError) or trouble.is_too_large(error)
    kind = ContextTooLarge if known else EngineError
    return kind(_ADVICE.sub("", trouble.told(error, model, tried, patience)))
