"""Models of many providers, through Pydantic AI. Needs the extra `pydantic-ai`."""

from turnloom.agents.spec import Patience
from turnloom.errors import UsageError

try:
    from turnloom.adapters.pydantic_ai.engine import PydanticAIEngine
except ImportError as error:
    # An older 'pydantic_ai' lacks imported names, and one without extras lacks a client.
    missing: str = error.name or getattr(error.__cause__, "name", None) or ""
    if missing.partition(".")[0] not in ("openai", "pydantic_ai", "tenacity"):
        raise
    raise UsageError(
        "Models need the package 'pydantic-ai-slim[openai]' 2.66 or newer, which is not installed. "
        'Install it with: pip install "turnloom[pydantic-ai]"'
    ) from error

__all__ = ["Patience", "PydanticAIEngine"]
