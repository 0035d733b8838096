"""The time to import Loom in a fresh process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measures import Measure, Rounds, Size

TURNLOOM, PYDANTIC = "from turnloom import Loom", "from pydantic import BaseModel"
PROGRAM = "from time import process_time as now; begin = now(); {}; print(now() - begin)"
TARGET = 2


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare the import of `turnloom` to that of Pydantic."""
    rounds = Rounds()
    for statement in (TURNLOOM, PYDANTIC) * size.imports:
        rounds.add(statement, _time(statement, root))
    value, ratio = rounds.least(TURNLOOM) * 1e3, rounds.ratio(TURNLOOM, PYDANTIC)
    yield Measure("import", TURNLOOM, value, "ms", PYDANTIC, ratio, TARGET)


def _time(statement: str, root: Path) -> float:
    """CPU seconds of a statement; later rounds find compiled files."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement)],
        cwd=root,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(root)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(done.stdout)
