"""The part of DSPy that Weft calls; the package ships no types."""

from contextlib import AbstractContextManager

from dspy.clients.engines import AsyncLM15Engine, LM15Engine
from dspy.lm15 import Request, Response

class LM:
    def __init__(
        self,
        model: str,
        *,
        engine: LM15Engine,
        async_engine: AsyncLM15Engine,
        cache: bool = True,
        num_retries: int = 3,
    ) -> None: ...
    async def acall(self, prompt: Request) -> Response: ...

def context(**settings: object) -> AbstractContextManager[None]: ...
