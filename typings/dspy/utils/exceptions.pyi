class DSPyError(Exception): ...

class LMError(DSPyError):
    message: str
    status: int | None
    retry_after: float | None

class LMStreamAssemblyError(LMError): ...

def is_retryable_lm_error(error: Exception) -> bool: ...
