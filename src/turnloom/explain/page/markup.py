"""HTML elements whose texts are always escaped."""

from collections.abc import Iterable

from turnloom.kernel.markup import plain


class Html(str):
    """HTML that is written as it is; every other string is text, and escaped."""

    __slots__ = ()


# The content of an element: text, HTML, or a sequence of these; None is left out.
Content = str | None | Iterable["Content"]

_VOID = frozenset({"input", "meta"})


def element(tag: str, *contents: Content, **attributes: str | int | bool | None) -> Html:
    """An element with its contents. `_` in a name of an attribute stands for `-`, and one at the
    end is left out; `None` and `False` leave the attribute out."""
    begin = f"<{tag}{''.join(map(_attribute, attributes, attributes.values()))}>"
    return Html(begin if tag in _VOID else f"{begin}{joined(*contents)}</{tag}>")


def joined(*contents: Content) -> Html:
    """Contents one after the other."""
    return Html("".join(map(_written, contents)))


def preformatted(text: str) -> Html:
    """A text with its white space; empty lines at its beginning take no room. The line feed after
    the tag is not part of the text."""
    rest = text.lstrip("\n")
    gap = "\n" * (len(text) - len(rest))
    before = element("span", gap, class_="gap") if gap else ""
    return Html(f"<pre>\n{before}{plain(rest)}</pre>")


def link(to: str, *contents: Content, **attributes: str | int | None) -> Html:
    """A link to an anchor of the page."""
    return element("a", *contents, href=f"#{to}", **attributes)


def seq_link(seq: int) -> Html | None:
    """A link to an event; none for the event 0, which does not exist."""
    return link(event_anchor(seq), str(seq), class_="seq") if seq else None


def event_anchor(seq: int) -> str:
    """The anchor of an event."""
    return f"event-{seq}"


def turn_anchor(turn: int) -> str:
    """The anchor of a turn."""
    return f"turn-{turn}"


def lines(texts: Iterable[str]) -> Html | None:
    """Lines of a terminal, as a list: indented ones keep their indentation."""
    found = [element("li", text) for text in texts]
    return element("ul", found, class_="lines") if found else None


def folded(summary: Content, *contents: Content, **attributes: str | int | bool | None) -> Html:
    """Contents that a reader opens."""
    return element("details", element("summary", summary), *contents, **attributes)


def table(columns: Iterable[str], rows: Iterable[Iterable[Content]], label: str) -> Html:
    """A table; on narrow screens, each cell repeats the name of its column."""
    names = [*columns]
    head = element("tr", [element("th", name, scope="col") for name in names])
    body = [
        element(
            "tr",
            [element("td", cell, data_label=name or None) for name, cell in _cells(names, row)],
        )
        for row in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", label, class_="unseen"),
            element("thead", head),
            element("tbody", body),
        ),
        class_="scroll",
    )


def _cells(names: Iterable[str], row: Iterable[Content]) -> Iterable[tuple[str, Content]]:
    return zip(names, row, strict=True)


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    spelled = name.removesuffix("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{plain(value)}"'


def _written(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Html):
        return content
    return plain(content) if isinstance(content, str) else "".join(map(_written, content))
