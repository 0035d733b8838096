"""Every trap on the page of AG2 has a test, and that test exists."""

from functools import reduce
from importlib import import_module

import pytest

from tests.docs.markdown import DOCS, ROOT, code, rows, section

PAGE = DOCS / "from-ag2.md"
LINES = ("## Traps of the classic line", "## Traps of AG2 1.2")
TRAPS = [row for line in LINES for row in rows(section(PAGE, line))]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap[0][:60])
def test_a_trap_has_tests_that_exist(trap: list[str]) -> None:
    there, here, tests = trap
    assert there and here
    assert code(tests), f"No test shows that this is none here: {there}"
    for test in code(tests):
        file, *names = test.split("::")
        assert (ROOT / file).is_file(), test
        module = import_module(file.removesuffix(".py").replace("/", "."))
        assert callable(reduce(getattr, names, module)), test
        assert names[-1].startswith("test_")


def test_both_lines_have_their_traps() -> None:
    assert len(TRAPS) == len({trap[0] for trap in TRAPS}) > 40
