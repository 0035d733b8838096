"""AutoGen, the classic line of AG2: clients, agents and group chats. Needs the extra `autogen`."""

from turnloom.agents.spec import Patience
from turnloom.errors import UsageError

try:
    from turnloom.adapters.autogen.agents import ConversableAgentEngine
    from turnloom.adapters.autogen.attaching import attach
    from turnloom.adapters.autogen.engine import AutogenEngine
except ImportError as error:
    # Another package 'autogen' lacks imported names.
    if (error.name or "").partition(".")[0] not in ("autogen", "httpx2", "openai", "tenacity"):
        raise
    raise UsageError(
        "The classic line of AG2 needs the package 'autogen' 0.14, which is not installed. "
        'Install it with: pip install "turnloom[autogen]"'
    ) from error

__all__ = ["AutogenEngine", "ConversableAgentEngine", "Patience", "attach"]
