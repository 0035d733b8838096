"""Run all gates, or those named as arguments, over the tree in the current folder.

A green gate prints nothing; a red one prints its output.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PYTHON = sys.executable
TOOLS = Path(PYTHON).parent

GATES: dict[str, Sequence[str]] = {
    "types": (f"{TOOLS}/pyright", "--pythonpath", PYTHON),
    "format": (f"{TOOLS}/ruff", "format", "--quiet", "--check", "--diff", "."),
    "lint": (f"{TOOLS}/ruff", "check", "--quiet", "--output-format", "concise", "."),
    "imports": (f"{TOOLS}/lint-imports", "--no-logo"),
    "size": (PYTHON, "-m", "gates.size"),
    "residue": (PYTHON, "-m", "gates.residue"),
}
EXTRA_ENVIRONMENT = {
    "types": {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},  # no notice about newer releases
    "imports": {"PYTHONPATH": "src"},  # this tree, not an installed package
}


def run(name: str) -> tuple[str, int, str]:
    done = subprocess.run(
        GATES[name],
        env=os.environ | EXTRA_ENVIRONMENT.get(name, {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return name, done.returncode, done.stdout.strip()


def main(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in GATES]
    if unknown:
        print(f"Unknown gate: {', '.join(unknown)}. Gates: {', '.join(GATES)}.")
        return 2
    with ThreadPoolExecutor(max_workers=2) as pool:
        red = [result for result in pool.map(run, names or GATES) if result[1] != 0]
    for name, _, words in red:
        print(f"--- {name} is red\n{words}\n")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
