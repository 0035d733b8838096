"""Safe HTML for notebooks, and Mermaid flowcharts."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal

# Control characters except tab and line feed, marks that change the reading direction, separators
# that some terminals take for line ends, and lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every character that could control a terminal or a page escaped."""
    return _UNSAFE.sub(_spell, text)


def visible_json(text: str) -> str:
    """The same for JSON text, which keeps its value."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def plain(text: object) -> str:
    """A value as escaped HTML text."""
    return escape(visible(str(text)))


def written(title: str, text: str) -> str:
    """A preformatted text under a title."""
    return f"<details open><summary>{plain(title)}</summary><pre>{plain(text)}</pre></details>"


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title and column names."""
    head = "".join(f"<th>{plain(each)}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(f'<td>{plain(cell)}</td>' for cell in row)}</tr>" for row in rows)
    caption = f"<caption>{plain(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Shape = Literal["step", "choice", "fork", "person", "undo", "end"]

_SHAPES: dict[Shape, tuple[str, str]] = {
    "step": ("[", "]"),
    "choice": ("{", "}"),
    "fork": ("{{", "}}"),
    "person": ("[/", "/]"),
    "undo": ("[[", "]]"),
    "end": ("([", "])"),
}

# Characters that Mermaid, or the page around it, would interpret.
_SPECIAL = re.compile(r'["#&<>`\\%*]|(?<=^\d)[.)]|(?<=^\d\d)[.)]|^[-+]')


class Flowchart:
    """A flowchart, built node by node; an edge may point to a node that is added later."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def node(self, id: str, text: str, shape: Shape = "step") -> None:
        """Add a node; its id is a word."""
        before, after = _SHAPES[shape]
        self._lines.append(f"    {id}{before}{_quoted(text)}{after}")

    def edge(self, source: str, target: str, text: str = "", *, dotted: bool = False) -> None:
        """Add an edge; exceptional ways are dotted."""
        arrow = "-.->" if dotted else "-->"
        label = f"|{_quoted(text)}|" if text else ""
        self._lines.append(f"    {source} {arrow}{label} {target}")

    def __str__(self) -> str:
        return "\n".join(["flowchart TD", *self._lines, ""])


def _quoted(text: str) -> str:
    """A quoted text without special characters."""
    shown = " ".join(text.split()) or " "
    return '"' + _SPECIAL.sub(lambda found: f"#{ord(found[0])};", shown) + '"'
