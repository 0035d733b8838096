"""The documentation as its tests see it: pages, fences, tables."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

_FENCE = re.compile(
    r"^(?:<!-- (?P<file>\S+) -->\n)?(?P<ticks>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Fence:
    """A fenced block, and the file that the comment before it names."""

    language: str
    text: str
    file: str | None
    line: int


def fences(page: Path, language: str = "") -> list[Fence]:
    """The fenced blocks of a page, all of them or those of one language."""
    text = page.read_text("utf-8")
    found = [
        Fence(m["language"], m["text"], m["file"], text.count("\n", 0, m.start("text")))
        for m in _FENCE.finditer(text)
    ]
    return [fence for fence in found if language in ("", fence.language)]


def section(page: Path, heading: str) -> str:
    """What a page says under a heading, up to the next one of the same level."""
    text = page.read_text("utf-8")
    level = heading.split(" ")[0]
    _, found, rest = f"\n{text}".partition(f"\n{heading}\n")
    assert found, f"{page.name} has no {heading!r}."
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every table in a text, without the headings."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for place, line in enumerate(lines) if _is_row(lines, place)]
    return [[cell.strip() for cell in _cells(line)] for line in found]


def code(cell: str) -> list[str]:
    """The words of a cell that are set as code."""
    return re.findall(r"`([^`]*)`", cell)


def _is_row(lines: list[str], place: int) -> bool:
    beneath = lines[place + 1] if place + 1 < len(lines) else ""
    rule = lines[place].startswith("|-") or beneath.startswith("|-")
    return lines[place].startswith("|") and not rule


def _cells(line: str) -> list[str]:
    inner = line.removeprefix("|").removesuffix("|")
    return [cell.replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]
