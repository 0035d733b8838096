"""Models and agents of AG2. Needs the extra `ag2`."""

from turnloom.agents.spec import Patience
from turnloom.errors import UsageError

try:
    from turnloom.adapters.ag2.agents import AG2AgentEngine
    from turnloom.adapters.ag2.engine import AG2Engine
except ImportError as error:
    # An older 'ag2' lacks imported names.
    if (error.name or "").partition(".")[0] not in ("ag2", "fast_depends", "tenacity"):
        raise
    raise UsageError(
        "AG2 engines need the package 'ag2' 1.2 or newer, which is not installed. "
        'Install it with: pip install "turnloom[ag2]"'
    ) from error

__all__ = ["AG2AgentEngine", "AG2Engine", "Patience"]
