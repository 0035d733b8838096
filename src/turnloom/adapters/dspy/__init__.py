"""Models of many providers, and programs that call them, through DSPy. Needs the extra `dspy`."""

from turnloom.agents.spec import Patience
from turnloom.errors import UsageError

try:
    from turnloom.adapters.dspy.engine import DSPyEngine
    from turnloom.adapters.dspy.programs import DSPyProgramEngine
except ImportError as error:
    missing: str = error.name or ""
    if missing.partition(".")[0] not in ("dspy", "tenacity"):
        raise
    raise UsageError(
        "DSPy's models need the package 'dspy' 3.4 or newer, which is not installed. "
        'Install it with: pip install "turnloom[dspy]"'
    ) from error

__all__ = ["DSPyEngine", "DSPyProgramEngine", "Patience"]
