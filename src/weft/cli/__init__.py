"""The command line: the only place that knows typer, rich and the terminal."""

from weft.cli.entry import main

__all__ = ["main"]
