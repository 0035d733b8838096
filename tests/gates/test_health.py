from pathlib import Path

import pytest

from gates.health import count_cycles, main
from gates.measure import measure
from tests.gates.conftest import ROOT, Tree


@pytest.mark.repeats
def test_the_table_shows_our_numbers_beside_starlettes(capsys, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main() == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["turnloom", "starlette"]
    table = {row[:30].strip(): row[30:].split() for row in rows[1:]}
    assert table["import cycles"][0] == "0"
    assert table["swallowed exceptions"] == ["0", "0"]
    assert table["mocks per test"] == ["0.00", "n/a"]
    assert int(table["lines"][1]) > 1000


def test_a_ring_of_imports_is_counted(tree: Tree, monkeypatch) -> None:
    tree.write("src/ringed/one.py", "import ringed.two\n")
    tree.write("src/ringed/two.py", "import ringed.three\n")
    tree.write("src/ringed/three.py", "import ringed.one\n")
    monkeypatch.syspath_prepend(tree.path / "src")
    assert count_cycles("ringed") == 1


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
