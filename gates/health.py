"""Print metrics of our tree next to those of Starlette."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import grimp

from gates.measure import measure, python_files
from gates.walks import Walk, walks


@dataclass(frozen=True)
class Tree:
    package: str
    folder: Path
    tests: Path | None


def locate(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            f"Package {package!r} is not installed. Run any `make` command to install it."
        )
    return Path(spec.submodule_search_locations[0])


def percentile(values: list[int], share: float) -> int:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0


def max_complexity(folder: Path) -> int:
    """The highest McCabe complexity, computed by the linter that enforces it."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901"),
            *("--config", "lint.mccabe.max-complexity=0", "--ignore-noqa"),
            *("--output-format", "json", str(folder)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    found = [re.search(r"\((\d+) > ", item["message"]) for item in json.loads(done.stdout)]
    return max((int(match[1]) for match in found if match), default=0)


def count_cycles(package: str) -> int:
    """Count the groups of modules that import each other in a cycle at run time."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    reach = {module: graph.find_upstream_modules(module) for module in graph.modules}
    rings = {
        frozenset({module, *(other for other in reach[module] if module in reach[other])})
        for module in graph.modules
    }
    return sum(len(ring) > 1 for ring in rings)


def mocks_per_test(tests: Path | None) -> str:
    if tests is None:
        return "n/a"
    modules = [measure(path) for path in python_files([tests])]
    count = sum(module.tests for module in modules)
    return f"{sum(len(module.mocks) for module in modules) / max(count, 1):.2f}"


def numbers(tree: Tree) -> dict[str, str]:
    modules = [measure(path) for path in python_files([tree.folder])]
    functions = [function for module in modules for function in module.functions]
    lengths = [function.lines for function in functions]
    lines = sum(module.lines for module in modules)

    def total(name: str) -> int:
        return sum(len(getattr(module, name)) for module in modules)

    return {
        "files": f"{len(modules)}",
        "lines": f"{lines}",
        "function lines, p90": f"{percentile(lengths, 0.90)}",
        "function lines, p99": f"{percentile(lengths, 0.99)}",
        "longest function": f"{max(lengths, default=0)}",
        "longest file": f"{max((module.lines for module in modules), default=0)}",
        "most parameters": f"{max((item.parameters for item in functions), default=0)}",
        "highest complexity": f"{max_complexity(tree.folder)}",
        "import cycles": f"{count_cycles(tree.package)}",
        "function-level imports": f"{total('nested_imports')}",
        "swallowed exceptions": f"{total('swallowed')}",
        "mocks per test": mocks_per_test(tree.tests),
        "type-ignores per 1000 lines": f"{total('ignores') * 1000 / max(lines, 1):.2f}",
    }


def show(*trees: Tree) -> None:
    """Print a row for each metric and a column for each tree."""
    columns = [numbers(tree) for tree in trees]
    print(f"{'':30}" + "".join(f"{tree.package:>12}" for tree in trees))
    for name in columns[0]:
        print(f"{name:30}" + "".join(f"{column[name]:>12}" for column in columns))


def show_walks(found: Sequence[Walk]) -> None:
    """Print the walks of the smallest runs."""
    print(f"\n{'functions / modules / switches':40}{'now':>18}{'aim':>18}")
    for walk in found:
        now = f"{walk.functions} / {walk.modules} / {walk.switches}"
        print(f"{walk.name:40}{now:>18}{walk.aim:>18}")


if __name__ == "__main__":
    show(
        Tree("turnloom", locate("turnloom"), Path("tests")),
        Tree("starlette", locate("starlette"), None),
    )
    show_walks(walks())
