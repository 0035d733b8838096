"""The command line, for the workflows that we ship."""

from tests.cli.conftest import sit, turnloom
from tests.support.warm import warm

__all__ = ["sit", "turnloom", "warm"]
