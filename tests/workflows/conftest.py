"""The command line, for the workflows that we ship."""

from tests.cli.conftest import weft

__all__ = ["weft"]
