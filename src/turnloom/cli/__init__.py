"""The command line: the only place that knows typer, rich and the terminal."""

from turnloom.cli.entry import main

__all__ = ["main"]
