"""Each number of the size budget, exceeded once."""

from collections.abc import Callable

import pytest

from tests.gates.conftest import Outcome, Tree


def methods(count: int) -> str:
    return "".join(f"    def give_{n}(self): ...\n" for n in range(count))


PLANTS = {
    "src/turnloom/long.py": ("X = 1\n" * 601, "file has 601 lines; at most 600"),
    "src/turnloom/function.py": (
        "def give():\n" + "    x = 1\n" * 80,
        "function 'give' has 81 lines; at most 80",
    ),
    "src/turnloom/parameters.py": (
        "def give(a, b, c, d, /, e, f, *, g, h): ...\n",
        "function 'give' has 8 parameters; at most 7",
    ),
    "src/turnloom/methods.py": (
        f"class Thing:\n{methods(13)}",
        "class 'Thing' has 13 public methods; at most 12",
    ),
    "src/turnloom/nested.py": ("def give():\n    import os\n", "import inside a function"),
    "src/turnloom/named_import.py": (
        "from importlib import import_module\ndef give():\n    return import_module('json')\n",
        "import inside a function",
    ),
    "src/turnloom/positions.py": (
        "def give(a, b, c, d, e): ...\ngive(1, 2, 3, 4, 5)\n",
        "'give' is called with 5 positional arguments; name those after the first 4",
    ),
    "src/turnloom/record.py": (
        "class Five:\n    a: int\n    b: int\n    c: int\n    d: int\n    e: int\n"
        "Five(1, 2, 3, 4, 5)\n",
        "'Five' is called with 5 positional arguments",
    ),
    "src/turnloom/twice.py": (
        "class Once: ...\n" * 2,
        "class 'Once' has the same name as the class at",
    ),
    "src/turnloom/gathered.py": (
        "from asyncio import gather\nasync def give(*them):\n"
        "    await gather(*them, return_exceptions=True)\n",
        "gathered errors are dropped",
    ),
    "src/turnloom/handler.py": ("try:\n    X = 1\nexcept Exception:\n    pass\n", "is swallowed"),
    "src/turnloom/bare.py": ("try:\n    X = 1\nexcept:\n    ...\n", "is swallowed"),
    "src/turnloom/cancelled.py": (
        "import asyncio\ntry:\n    X = 1\nexcept (KeyError, asyncio.CancelledError):\n    pass\n",
        "is swallowed",
    ),
    "src/turnloom/suppressed.py": (
        "import contextlib\nwith contextlib.suppress(Exception):\n    X = 1\n",
        "is swallowed",
    ),
    "tests/test_mock.py": ("from unittest import mock\n", "mock; use a fake"),
    "tests/test_patch.py": (
        "def test_patch(monkeypatch):\n    monkeypatch.setattr('os.sep', '')\n",
        "mock; use a fake",
    ),
    "tests/test_plugin.py": ("def test_plugin(mocker): ...\n", "mock; use a fake"),
    "src/turnloom/broken.py": ("def give(\n", "cannot be read"),
    "tests/test_long.py": ("X = 1\n" * 601, "file has 601 lines"),
}
WITHIN = {
    "src/turnloom/at_most.py": (
        "def give(self, a, b, c, d, e, f, g):\n"
        + "    x = 1\n" * 79
        + f"class Within:\n{methods(12)}    @property\n    def more(self): ...\n"
        + "    def _hidden(self): ...\n    def test_more(self): ...\n"
    ),
    "src/turnloom/app/lazy.py": "def give():\n    import os\n",
    "src/turnloom/once.py": "class _Hidden: ...\n",
    "src/turnloom/again.py": "class _Hidden: ...\nprint(*[1, 2], 3, 4, 5)\nmax(1, 2, 3, 4, 5)\n",
    "src/turnloom/looked.py": (
        "from asyncio import gather\nasync def give(*them):\n"
        "    return await gather(*them, return_exceptions=True)\n"
    ),
    "src/turnloom/chosen.py": (
        "from importlib import import_module\ndef give(name):\n    return import_module(name)\n"
    ),
    "src/turnloom/named.py": "try:\n    X = 1\nexcept KeyError:\n    pass\n",
    "tests/test_environment.py": "def test_x(monkeypatch):\n    monkeypatch.setenv('X', '1')\n",
}


@pytest.fixture(scope="module")
def outcome(new_tree: Callable[[], Tree]) -> Outcome:
    tree = new_tree()
    for path, (text, _) in PLANTS.items():
        tree.write(path, text)
    for path, text in WITHIN.items():
        tree.write(path, text)
    return tree.gate("size")


@pytest.mark.parametrize("path", PLANTS)
def test_an_excess_is_seen(outcome: Outcome, path: str) -> None:
    says = PLANTS[path][1]
    assert outcome.code != 0
    assert any(line.startswith(f"{path}:") and says in line for line in outcome.words.splitlines())


@pytest.mark.parametrize("path", WITHIN)
def test_the_limit_itself_is_allowed(outcome: Outcome, path: str) -> None:
    assert path not in outcome.words


@pytest.mark.parametrize("comment", ["# type: ignore[assignment]", "# pyright: ignore[reportX]"])
def test_type_ignores_have_a_budget(tree: Tree, comment: str) -> None:
    for number in range(2):
        tree.write(f"src/turnloom/filler_{number}.py", "X = 1\n" * 500)
    tree.write("src/turnloom/ignoring.py", f"X: int = 1  {comment}\n")
    assert tree.gate("size").code == 0
    tree.write("src/turnloom/ignoring.py", f"X: int = 1  {comment}\nY: int = 1  {comment}\n")
    outcome = tree.gate("size")
    assert outcome.code != 0
    assert "2 type-ignores in" in outcome.words
