"""Each kind of residue, left behind once."""

from collections.abc import Callable

import pytest

from tests.gates.conftest import Outcome, Tree

FORMER = "we" + "ft"
PLANTS = {
    "src/turnloom/note.py": ("# TODO: finish\n", "'TODO'"),
    "docs/fix.md": ("FIXME later\n", "'FIXME'"),
    "bench/three.py": ("# XXX\n", "'XXX'"),
    "Makefile": ("# HACK\n", "'HACK'"),
    "docs/now.md": ("This is enough for now.\n", "'for now'"),
    "src/turnloom/word.py": ("# the legacy shape\n", "'legacy'"),
    "docs/stages.md": ("Built in phase 2.\n", "'phase 2'"),
    "src/turnloom/past.py": ("# this used to be a list\n", "'used to be'"),
    "src/turnloom/ticket.py": ("# see issue #12\n", "'issue #12'"),
    "src/turnloom/place.py": ("X = '/home/somebody/x'\n", "'/home/s' is a path of one machine"),
    "docs/place.md": ("Look in `/root/x`.\n", "'/root/x' is a path of one machine"),
    "examples/place.py": ("X = '/tmp/x'\n", "'/tmp/x' is a path of one machine"),
    "src/turnloom/halt.py": ("breakpoint()\n", "call of 'breakpoint' is a leftover"),
    "src/turnloom/say.py": ("print(1)\n", "call of 'print' is a leftover"),
    "src/turnloom/run_manager.py": ("X = 1\n", "module name 'run_manager' is generic"),
    "src/turnloom/utils/__init__.py": ("X = 1\n", "module name 'utils' is generic"),
    "src/turnloom/suffix.py": ("class RunManager: ...\n", "class name 'RunManager' is generic"),
    "src/turnloom/prefix.py": ("class BaseRun: ...\n", "class name 'BaseRun' is generic"),
    "src/turnloom/dated.py": ("def give_v2(): ...\n", "function name 'give_v2' is dated"),
    "src/turnloom/broken.py": ("def give(\n", "cannot be read"),
    "src/turnloom/former.py": (f"import {FORMER}\n", f"{FORMER!r} is the project's former name"),
    "tests/gates/former.py": (f"X = 'inter{FORMER.upper()}ed'\n", f"{FORMER.upper()!r} is"),
    "docs/former.svg": (f"<svg><!-- {FORMER.title()} --></svg>\n", f"{FORMER.title()!r} is"),
    f"docs/my_{FORMER.title()}s.png": ("", f"{FORMER.title()!r} in the path"),
    "requirements.lock": ("--index-url https://example.org\n", "names a host"),
}
CLEAN = {
    "src/turnloom/fine.py": (
        "class Database: ...\nclass Basement: ...\nconsole.print(1)\nX = 'https://x.org/home/a'\n"
    ),
    "docs/fine.md": "The todo list, a phase, `src/work/x` and `./tmp/x`.\n",
    "CHANGELOG.md": "The legacy shape is gone.\n",
    "ignored.sqlite3": "TODO\n",
}


@pytest.fixture(scope="module")
def outcome(new_tree: Callable[[], Tree]) -> Outcome:
    tree = new_tree()
    for path, (text, _) in PLANTS.items():
        tree.write(path, text)
    for path, text in CLEAN.items():
        tree.write(path, text)
    tree.run("git", "add", "docs")
    return tree.gate("residue")


@pytest.mark.parametrize("path", PLANTS)
def test_residue_is_seen(outcome: Outcome, path: str) -> None:
    says = PLANTS[path][1]
    assert outcome.code != 0
    hits = [line for line in outcome.words.splitlines() if line.startswith(f"{path}:1:")]
    assert any(says in line for line in hits), outcome.words


@pytest.mark.parametrize("path", CLEAN)
def test_what_only_looks_like_residue_is_left_alone(outcome: Outcome, path: str) -> None:
    assert path not in outcome.words


def test_a_folder_that_git_does_not_know_is_red(tree: Tree) -> None:
    tree.run("rm", "-r", ".git")
    assert tree.gate("residue").code != 0
