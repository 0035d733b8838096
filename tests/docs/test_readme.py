"""What the README and the pages say that a command prints is what it prints."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.console import matches, prepare, run, steps
from tests.docs.markdown import PAGES, fences

TOLD = [page for page in PAGES if fences(page, "console")]
# Starting a process is most of what a command costs, and pages do not know each other.
AT_ONCE = 4


def surprises(page: Path, folder: Path) -> list[str]:
    """Run the commands of a page in order, and note each that prints something else."""
    prepare(folder)
    found: list[str] = []
    for fence in fences(page, "console"):
        for command, said in steps(fence):
            printed = run(command, folder)
            if not matches(said, printed):
                where = f"{page.name}:{fence.line}: `{command}`"
                found.append(f"{where} printed:\n{printed}\nThe page says:\n{said}")
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Future[list[str]]]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            page: pool.submit(surprises, page, tmp_path_factory.mktemp(page.stem)) for page in TOLD
        }


@pytest.mark.xdist_group("pages")  # all pages are played at once, in one process
@pytest.mark.timeout(180)  # a loaded machine starts processes slowly
@pytest.mark.parametrize("page", TOLD, ids=lambda page: page.stem)
def test_commands_print_what_the_page_says(
    page: Path, played: dict[Path, Future[list[str]]]
) -> None:
    found = played[page].result()
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("a b\n", "a    b   \n"),
        ("Run k7m2xq9f4d ended\n", "Run abcdefghij ended\n"),
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
        ("Run k7m2xq9f4d ended\n", "Run  ended\n"),
        ("one\n…\nfour\n", "one\ntwo\n"),
        ("x.z\n", "xyz\n"),
    ],
)
def test_everything_else_must_be_equal(said: str, printed: str) -> None:
    assert not matches(said, printed)
