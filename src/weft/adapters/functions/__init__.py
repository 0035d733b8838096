"""Python functions as engines, tools and hooks."""

from weft.adapters.functions.calls import FunctionCallee, detached, gives_awaitable
from weft.adapters.functions.engine import FunctionEngine

__all__ = ["FunctionCallee", "FunctionEngine", "detached", "gives_awaitable"]
