"""What the README and the pages say that a command prints is what it prints."""

from pathlib import Path

import pytest

from tests.docs.console import matches, prepare, run, steps
from tests.docs.markdown import PAGES, fences
from tests.support.warm import Warm

# A page may have forty commands, on whatever else the machine does.
pytestmark = [pytest.mark.repeats, pytest.mark.timeout(240)]

# What several scripts of a page import, at two seconds each.
SHARED = {"engines": ("autogen",)}
TOLD = [page for page in PAGES if fences(page, "console")]


@pytest.mark.parametrize("page", TOLD, ids=lambda page: page.stem)
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path, warm: Warm) -> None:
    prepare(tmp_path)
    warm.load(*SHARED.get(page.stem, ()))
    surprises: list[str] = []
    for fence in fences(page, "console"):
        for command, said in steps(fence):
            printed = run(command, tmp_path, warm)
            if not matches(said, printed):
                where = f"{page.name}:{fence.line}: `{command}`"
                surprises.append(f"{where} printed:\n{printed}\nThe page says:\n{said}")
    assert not surprises, "\n".join(surprises)


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("a b\n", "a    b   \n"),
        ("Run k7m2xq9f4dsw8h3pjv6ntbryce ended\n", "Run abcdefghijkmnpqrstuvwxyz23 ended\n"),
        ("took 3 ms\n", "took 1.2 s\n"),
        ("at 2026-01-02 03:04:05\n", "at 2031-12-30 23:59:59\n"),
        ("one\n…\nfour\n", "one\ntwo\nthree\nfour\n"),
        ("one\n…\n", "one\n"),
        ("x … z\n", "x anything at all z\n"),
        ("", ""),
    ],
)
def test_what_differs_from_run_to_run_is_compared_by_shape(said: str, printed: str) -> None:
    assert matches(said, printed)


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("a\n", "b\n"),
        ("a\n", "  a\n"),
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("", "a\n"),
        ("Run k7m2xq9f4dsw8h3pjv6ntbryce ended\n", "Run  ended\n"),
        ("one\n…\nfour\n", "one\ntwo\n"),
        ("x.z\n", "xyz\n"),
    ],
)
def test_everything_else_must_be_equal(said: str, printed: str) -> None:
    assert not matches(said, printed)
