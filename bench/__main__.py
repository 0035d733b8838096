"""Measure the named scenarios, or all, and print the ratios."""

import argparse
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench import (
    assembly,
    board,
    crowd,
    engines,
    followers,
    forking,
    forms,
    hops,
    imports,
    parking,
    postgres,
    replaying,
    resuming,
    triggers,
    turns,
    vectors,
    workers,
)
from bench.measures import FULL, QUICK, Measure, Scenario, Size
from bench.report import as_json, show

SCENARIOS: dict[str, Scenario] = {
    "memory": turns.in_memory,
    "sqlite": turns.in_sqlite,
    "postgres": postgres.measure,
    "derive": triggers.measure,
    "import": imports.measure,
    "parked": parking.measure,
    "crowd": crowd.measure,
    "followers": followers.measure,
    "resume": resuming.measure,
    "replay": replaying.measure,
    "fork": forking.measure,
    "board": board.measure,
    "hops": hops.measure,
    "forms": forms.measure,
    "vectors": vectors.measure,
    "assembly": assembly.measure,
    "engines": engines.measure,
    "workers": workers.measure,
}

# Width of the table on a terminal of unknown width.
WIDTH = 132


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--quick", action="store_true", help="run a smoke test")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE; - for stdout")
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"unknown scenario: {', '.join(unknown)}; scenarios: {', '.join(SCENARIOS)}")
    return chosen


def measure(names: Sequence[str], size: Size, console: Console) -> list[Measure]:
    """Run each scenario in a temporary folder."""
    found: list[Measure] = []
    for name in names:
        with console.status(f"measuring {name}"), tempfile.TemporaryDirectory() as folder:
            found += SCENARIOS[name](size, Path(folder))
    return found


def main(arguments: Sequence[str]) -> int:
    chosen = parse(arguments)
    console = Console(stderr=chosen.json == "-")
    console.width = max(console.width, WIDTH)
    size = QUICK if chosen.quick else FULL
    measures = measure(chosen.scenario or list(SCENARIOS), size, console)
    show(measures, console)
    if chosen.json == "-":
        print(as_json(measures, quick=chosen.quick))
    elif chosen.json:
        Path(chosen.json).write_text(as_json(measures, quick=chosen.quick) + "\n")
    return 1 if chosen.strict and any(each.over for each in measures) else 0


if __name__ == "__main__":
    logging.getLogger("turnloom.check").setLevel(logging.ERROR)  # idle variables are intended here
    sys.exit(main(sys.argv[1:]))
