"""HTML documents as a strict reader sees them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"input", "meta"}
UNSEEN = {"style", "script", "title"}
# Elements that may not hold blocks.
INLINE = {"a", "b", "button", "code", "h1", "h2", "h3", "h4", "p", "pre", "span"}
BLOCKS = {"details", "div", "dl", "ol", "p", "pre", "section", "table", "ul"}
# What an element must stand in.
PARENTS = {
    "li": {"ol", "ul"},
    "dt": {"div"},
    "dd": {"div"},
    "td": {"tr"},
    "th": {"tr"},
    "tr": {"tbody", "thead"},
    "summary": {"details"},
    "caption": {"table"},
    "rect": {"a", "svg"},
}


@dataclass
class Document(HTMLParser):
    """A document whose elements are closed, and stand where they may."""

    text: str = ""
    tags: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])
    links: list[str] = field(default_factory=list[str])
    attributes: set[str] = field(default_factory=set[str])
    policy: str = ""
    _open: list[str] = field(default_factory=list[str])
    _fresh: bool = False

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        around = self._open[-1] if self._open else ""
        assert around in PARENTS.get(tag, {around}), (around, tag)
        assert not (tag in BLOCKS and INLINE & {*self._open} - {"b"}), (self._open, tag)
        given = dict(attrs)
        assert len(given) == len(attrs)
        self.tags.append(tag)
        self.attributes |= given.keys()
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        if given.get("http-equiv"):
            self.policy = given["content"] or ""
        self._fresh = tag == "pre"
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._fresh:  # a line feed at the beginning of `pre` is not part of its text
            data, self._fresh = data.removeprefix("\n"), False
        if not UNSEEN & {*self._open}:
            self.text += data


def read_html(page: str) -> Document:
    """A valid page that refers to nothing but its own anchors."""
    assert page.startswith("<!doctype html>\n")
    found = Document()
    found.feed(page)
    found.close()
    assert not found._open, found._open
    assert len(set(found.ids)) == len(found.ids)
    assert {each.removeprefix("#") for each in found.links} <= {*found.ids}
    assert all(each.startswith("#") for each in found.links)
    assert not {"src", "style", "srcset", "action"} & found.attributes
    assert not [each for each in found.attributes if each.startswith("on")]
    return found
