"""How this process was called, to print commands that can be repeated."""

import os
import shlex
import shutil
import sys


def again(*words: str) -> str:
    """A command line that calls Turnloom as it was called now, from the same folder."""
    return f"{program()} {shlex.join(words)}"


def program() -> str:
    """The words that call Turnloom."""
    called = sys.argv[0]
    name = os.path.basename(called)
    if name == "__main__.py":
        return f"{_short(sys.executable)} -m turnloom"
    return shlex.quote(_short(called))


def _short(path: str) -> str:
    """A program by its name where the shell finds it so, else by its path."""
    name = os.path.basename(path)
    found = shutil.which(name)
    if found and os.path.exists(path) and os.path.samefile(found, path):
        return name
    return path
