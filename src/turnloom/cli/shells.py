"""Completion of the command line in shells, by typer."""

import os
from typing import Literal

from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]
    get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
)

Shell = Literal["bash", "zsh", "fish"]

# How a shell asks which words come next.
ASKING = "_TURNLOOM_COMPLETE"


def script(shell: Shell) -> str:
    """The script that makes a shell complete `turnloom`."""
    return get_completion_script(prog_name="turnloom", complete_var=ASKING, shell=shell)


def prepare() -> None:
    """Let typer answer a shell, if one asks."""
    if ASKING in os.environ:
        completion_init()
