"""A clean little tree with our configuration, in which one test plants one violation."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from gates.size import EXEMPT_CLASSES, EXEMPT_IMPORTS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# What an exemption is for must exist; what tests a tree need not know of it.
EXEMPT = '''"""A module."""


class {}:  # pragma: no cover
    """What is exempt."""
'''


@dataclass(frozen=True)
class Outcome:
    code: int
    words: str


@dataclass(frozen=True)
class Tree:
    path: Path

    def write(self, name: str, text: str = '"""A module."""\n') -> None:
        """Write a file; a module inside a package that is not there yet brings the package."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        parent = path.parent
        while "src" in parent.relative_to(self.path).parts[:-1]:
            if not (parent / "__init__.py").exists():
                (parent / "__init__.py").write_text('"""A package."""\n', encoding="utf-8")
            parent = parent.parent

    def gate(self, name: str) -> Outcome:
        return self.run(sys.executable, "-m", "gates", name, PYTHONPATH=str(ROOT))

    def make(self, verb: str, *settings: str) -> Outcome:
        """Run our Makefile here, with the environment that runs this test."""
        return self.run(
            *("make", "--no-print-directory", "-f", str(ROOT / "Makefile")),
            *(verb, f"BIN={BIN}", "STAMP=", *settings),
            PYTHONPATH=f"{ROOT}{os.pathsep}src" if verb == "check" else "src",
        )

    def run(self, *command: str, **environment: str) -> Outcome:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COV", "MAKE", "MFLAGS", "PYTEST"))
        }
        done = subprocess.run(
            command,
            cwd=self.path,
            env=inherited | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout)


def contract(name: str) -> dict[str, list[str]]:
    return next(item for item in CONFIG["tool"]["importlinter"]["contracts"] if item["id"] == name)


def plant_tree(path: Path) -> Tree:
    tree = Tree(path)
    tree.write(".gitignore", (ROOT / ".gitignore").read_text(encoding="utf-8"))
    tree.write("pyproject.toml", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for package in [*contract("kinds")["containers"], "turnloom.runtime", "turnloom.adapters"]:
        tree.write(f"src/{package.replace('.', '/')}/__init__.py")
    tree.write("src/turnloom/errors.py")
    for place in EXEMPT_CLASSES:
        path, _, name = place.partition(":")
        tree.write(path, EXEMPT.format(name))
    for path in EXEMPT_IMPORTS:
        tree.write(path, '"""A module."""\n')
    tree.write("tests/conftest.py", (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    tree.run("git", "init", "--quiet")
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return plant_tree(tmp_path)


@pytest.fixture(scope="module")
def new_tree(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Tree]:
    return lambda: plant_tree(tmp_path_factory.mktemp("tree"))
