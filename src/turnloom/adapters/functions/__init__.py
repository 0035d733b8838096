"""Python functions as engines, tools and hooks."""

from turnloom.adapters.functions.calls import FunctionCallee, as_async, is_async
from turnloom.adapters.functions.engine import FunctionEngine

__all__ = ["FunctionCallee", "FunctionEngine", "as_async", "is_async"]
