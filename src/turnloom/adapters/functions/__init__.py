"""Python functions as engines, tools and hooks."""

from turnloom.adapters.functions.calls import FunctionCallee, detached, gives_awaitable
from turnloom.adapters.functions.engine import FunctionEngine

__all__ = ["FunctionCallee", "FunctionEngine", "detached", "gives_awaitable"]
