"""Models of every provider, through Pydantic AI. Needs the extra `pydantic-ai`."""

from weft.errors import UsageError

try:
    from weft.adapters.pydantic_ai.engine import PydanticAIEngine
    from weft.adapters.pydantic_ai.patience import Patience
except ImportError as error:
    # An older 'pydantic_ai' is there but has not what is imported.
    if (error.name or "").partition(".")[0] not in ("pydantic_ai", "tenacity"):
        raise
    raise UsageError(
        "Models need the package 'pydantic-ai-slim' 2.66 or newer, which is not installed. "
        'Install it with: pip install "weft[pydantic-ai]"'
    ) from error

__all__ = ["Patience", "PydanticAIEngine"]
