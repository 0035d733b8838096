"""What the commands of a page run in."""

from tests.support.warm import warm

__all__ = ["warm"]
