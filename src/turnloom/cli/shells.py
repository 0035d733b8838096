"""Shell completion, by typer."""

import os
from typing import Literal

from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]
    get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
)

Shell = Literal["bash", "zsh", "fish"]

# The variable by which a shell asks for completions.
ASKING = "_TURNLOOM_COMPLETE"


def script(shell: Shell) -> str:
    """The completion script of a shell."""
    return get_completion_script(prog_name="turnloom", complete_var=ASKING, shell=shell)


def prepare() -> None:
    """Let typer answer a shell that asks for completions."""
    if ASKING in os.environ:
        completion_init()
