from pathlib import Path

import pytest

from gates import health
from gates.measure import measure
from gates.walks import walks
from tests.gates.conftest import Tree

# A ring of three modules, a handler that says nothing, and a test with a mock beside one without.
RINGED = {
    "src/ringed/one.py": "import ringed.two\n",
    "src/ringed/two.py": "import ringed.three\n",
    "src/ringed/three.py": "import ringed.one\ntry:\n    X = 1\nexcept Exception:\n    pass\n",
    "its_tests/test_one.py": "def test_x(mocker): ...\ndef test_y(): ...\n",
}


def test_the_numbers_of_a_tree_stand_beside_those_of_starlette(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in RINGED.items():
        tree.write(name, text)
    monkeypatch.syspath_prepend(tree.path / "src")
    health.show(
        health.Tree("ringed", tree.path / "src/ringed", tree.path / "its_tests"),
        health.Tree("starlette", health.locate("starlette"), None),
    )
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["ringed", "starlette"]
    table = {row[:30].strip(): row[30:].split() for row in rows[1:]}
    assert table["import cycles"] == ["1", "0"]
    assert table["swallowed exceptions"] == ["1", "0"]
    assert table["mocks per test"] == ["0.50", "n/a"]
    assert int(table["lines"][1]) > 1000


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="'no_such_package'"):
        health.locate("no_such_package")


def test_functions_and_habits_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "thing.py"
    path.write_text(
        "class Thing:\n"
        "    def give(self, a, *, b):  # type: ignore\n"
        "        import os\n"
        "        return os\n"
    )
    module = measure(path)
    assert [(item.lines, item.parameters) for item in module.functions] == [(3, 2)]
    assert (module.nested_imports, module.ignores, module.lines) == ([3], [2], 4)


def test_the_walks_of_the_smallest_runs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = walks()
    assert [walk.name.partition(" ")[0] for walk in found] == ["a", "board:", "flow:", "explain"]
    for walk in found:
        assert 10 < walk.modules < walk.functions
        assert walk.switches > walk.modules
    health.show_walks(found)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split()[-5:] for row in rows] == [walk.aim.split() for walk in found]
