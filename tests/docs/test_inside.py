"""The page and the picture about the inside name files that exist."""

import re
from pathlib import Path

import pytest

from tests.docs.markdown import DOCS, ROOT

SOURCE = ROOT / "src" / "turnloom"
# A path with a folder, as in `runtime/journal.py` or `around/`.
PATH = re.compile(r"(?:[a-z_]+/)+(?:[a-z_]+\.(?:py|svg|md))?")


def missing(text: str, *roots: Path) -> list[str]:
    """The paths in a text that are below none of these folders."""
    found = sorted(set(PATH.findall(text)))
    return [path for path in found if not any((root / path).exists() for root in roots)]


def test_the_page_names_what_there_is() -> None:
    text = (DOCS / "inside.md").read_text()
    named = [one or other for one, other in re.findall(r"`([^`\s]+)`|\]\(([^)]+)\)", text)]
    assert len(named) > 30
    assert missing("\n".join(named).replace("<concept>/", ""), SOURCE, ROOT, DOCS) == []


def test_the_picture_names_what_there_is() -> None:
    drawn = re.findall(r">([^<]+)</text>", (DOCS / "pictures" / "inside.svg").read_text())
    runtime = SOURCE / "runtime"
    assert missing("\n".join(drawn), SOURCE, runtime) == []


@pytest.mark.parametrize("path", ["runtime/gone.py", "nowhere/"])
def test_a_path_that_is_gone_is_found(path: str) -> None:
    assert missing(f"see {path} for more", SOURCE) == [path]
