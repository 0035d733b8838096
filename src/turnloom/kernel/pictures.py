"""Pictures as text: flowcharts in the language of Mermaid."""

import re
from typing import Literal

Shape = Literal["step", "choice", "fork", "person", "undo", "end"]

_SHAPES: dict[Shape, tuple[str, str]] = {
    "step": ("[", "]"),
    "choice": ("{", "}"),
    "fork": ("{{", "}}"),
    "person": ("[/", "/]"),
    "undo": ("[[", "]]"),
    "end": ("([", "])"),
}

# What Mermaid, or a page that it is shown on, would take for more than text.
_SPECIAL = re.compile(r'["#&<>`\\%*]|(?<=^\d)[.)]|(?<=^\d\d)[.)]|^[-+]')


class Flowchart:
    """A flowchart that is drawn node by node; an edge may lead to a node that comes later."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def node(self, id: str, text: str, shape: Shape = "step") -> None:
        """Add a node; its id is a word."""
        before, after = _SHAPES[shape]
        self._lines.append(f"    {id}{before}{_quoted(text)}{after}")

    def edge(self, source: str, target: str, text: str = "", *, dotted: bool = False) -> None:
        """Add an edge; what is not the usual way is dotted."""
        arrow = "-.->" if dotted else "-->"
        label = f"|{_quoted(text)}|" if text else ""
        self._lines.append(f"    {source} {arrow}{label} {target}")

    def __str__(self) -> str:
        return "\n".join(["flowchart TD", *self._lines, ""])


def _quoted(text: str) -> str:
    """A text between quotes, in which nothing is special."""
    shown = " ".join(text.split()) or " "
    return '"' + _SPECIAL.sub(lambda found: f"#{ord(found[0])};", shown) + '"'
