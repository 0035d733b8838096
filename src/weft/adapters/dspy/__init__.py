"""Models of many providers, through DSPy. Needs the extra `dspy`."""

from weft.agents.spec import Patience
from weft.errors import UsageError

try:
    from weft.adapters.dspy.engine import DSPyEngine
except ImportError as error:
    missing: str = error.name or ""
    if missing.partition(".")[0] not in ("dspy", "tenacity"):
        raise
    raise UsageError(
        "DSPy's models need the package 'dspy' 3.4 or newer, which is not installed. "
        'Install it with: pip install "weft[dspy]"'
    ) from error

__all__ = ["DSPyEngine", "Patience"]
