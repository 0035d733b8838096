"""The base of all commands: options, and `carry_out`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.cli.terminal import Terminal


def as_text(words: str | None) -> str | None:
    """A command-line argument, if it is valid text.

    Raises:
        BadParameter: its bytes are not UTF-8.
    """
    if words is not None and not words.isascii():
        try:
            words.encode()
        except UnicodeEncodeError as error:
            raise typer.BadParameter(f"{words!r} is not UTF-8 text. Write it as UTF-8.") from error
    return words


ModelName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        callback=as_text,
        help="The model of agents that choose no engine and name none, as openai:gpt-5.",
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        callback=as_text,
        help="The engine that asks models for agents that choose none, as ag2.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command with its options; typer builds it from its fields."""

    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and the log.")] = False

    @abstractmethod
    def carry_out(self, terminal: Terminal) -> int:
        """Run the command, and return the exit code."""
