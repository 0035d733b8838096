"""Single requests to a model, as those who try again want them."""

from typing import Any

from dspy import LM, context
from dspy.lm15 import Request, Response
from dspy.utils.exceptions import LMError, LMStreamAssemblyError, is_retryable_lm_error


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


def may_pass(error: BaseException) -> bool:
    """Whether it may be gone when the same request is made again; a stream may have broken."""
    is_cut = isinstance(error, LMStreamAssemblyError | TimeoutError)
    return is_cut or (isinstance(error, Exception) and is_retryable_lm_error(error))
