"""Console blocks: commands with the output that a page says they have.

`$ ` begins a command; what follows is its output. `…` stands for anything: alone on a line for any
number of lines, else for the rest of that place in the line. Run ids, instants, durations and
digests are compared by their shape, spaces inside a line by their presence.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import ROOT, Fence
from tests.support.warm import Warm

ANYTHING = "…"
COPIED = ("workflows", "examples", "docs/snippets")

_INSTANT = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+Z)?"
_SHAPES = {
    "id": (r"\b(?=[a-z]*[2-9])[2-9a-km-np-z]{26}\b", r"[2-9a-km-np-z]{26}"),
    "digest": (r"\b[0-9a-f]{32}\b", r"[0-9a-f]{32}"),
    "instant": (_INSTANT, _INSTANT),
    "duration": (r"\b\d+ ms\b|\b\d+\.\d s\b", r"(?:\d+ ms|\d+\.\d s|\d+ min \d+ s)"),
    "anything": (ANYTHING, ".*"),
}
_SHAPE = re.compile("|".join(f"(?P<{name}>{said})" for name, (said, _) in _SHAPES.items()))


def prepare(folder: Path) -> None:
    """Put into a folder what a reader finds in a checkout."""
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", ".turnloom")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)


def steps(fence: Fence) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with its output."""
    for part in re.split(r"^\$ ", fence.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def run(command: str, folder: Path, warm: Warm, **more: str) -> str:
    """What a command prints to both streams in a folder, with nothing at its standard input, and
    with more in its environment."""
    environment = {
        **{name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ},
        **{name: value for name, value in os.environ.items() if name.startswith("COV")},
        "PATH": os.environ["PATH"],
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "PYTHONIOENCODING": "utf-8",
        **more,
    }
    done = warm.shell(command, folder, environment)
    # A shell at a terminal says so; one that runs a single command is gone by then.
    return f"{done.out}Killed\n" if done.code == -9 else done.out


def matches(said: str, printed: str) -> bool:
    """Whether an output is what a page says it is."""
    pattern = "".join(map(_line_pattern, said.rstrip().splitlines()))
    return (
        re.fullmatch(pattern, "".join(f"{_even(line)}\n" for line in printed.splitlines()))
        is not None
    )


def _line_pattern(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*?"
    pattern, end = "", 0
    line = _even(line)
    for shape in _SHAPE.finditer(line):
        assert shape.lastgroup
        pattern += re.escape(line[end : shape.start()]) + _SHAPES[shape.lastgroup][1]
        end = shape.end()
    return rf"{pattern}{re.escape(line[end:])}\n"


def _even(line: str) -> str:
    """A line whose columns stand one space apart."""
    text = line.strip()
    return line[: len(line) - len(line.lstrip())] + re.sub(r" +", " ", text)
