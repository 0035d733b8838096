"""Text of a declaration file as a document, with every problem that it has."""

import re
from bisect import bisect_right

from turnloom.adapters.files.json_text import read_json
from turnloom.adapters.files.nodes import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    Entries,
    Items,
    Node,
    Refused,
    Scalar,
    too_deep,
)
from turnloom.adapters.files.yaml_text import read_yaml
from turnloom.errors import Diagnostic
from turnloom.kernel.documents import Document, Path, Place
from turnloom.kernel.values import Json, kind_of, preview, type_names

_LINE_END = re.compile(r"\r\n?|\n")


def parse(file: str, text: str) -> tuple[Document | None, list[Diagnostic]]:
    """The document of a JSON or YAML text, None if it cannot be read, and all problems found."""
    text = text.removeprefix("\ufeff")
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    try:
        _refuse_unfit(text)
        node = read_json(text) if file.endswith(".json") else read_yaml(text)
        unfolding = _Unfolding(file, starts)
        value = unfolding.value(node or Entries(0, ()), ())
    except Refused as refused:
        line = bisect_right(starts, refused.offset)
        return None, [Diagnostic(file, line, refused.code, refused.message, refused.remedy)]
    return Document(file, value, text, unfolding.places), sorted(set(unfolding.problems))


def _refuse_unfit(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        message = f"The file is larger than {MAX_BYTES // 1024 // 1024} MiB."
        raise Refused("W005", 0, message, "Move what is not declaration out of it.")
    if (offset := text.find("\0")) >= 0:
        raise Refused("W001", offset, "The file holds a NUL character.", "Save it as UTF-8 text.")


class _Unfolding:
    """One walk over a tree: gathers values, places and problems, bounds what aliases blow up."""

    def __init__(self, file: str, starts: list[int]) -> None:
        self._file, self._starts = file, starts
        self._values = self._characters = 0
        self.places: dict[Path, Place] = {}
        self.problems: list[Diagnostic] = []

    def value(self, node: Node, path: Path) -> Json:
        """The JSON value of a node; a flawed one stays as its text, so nothing else fails."""
        self.places.setdefault(path, self._place(node.offset))
        self._spend(node.offset, values=1)
        if node.flaw:
            self._report(node, node.flaw.message, node.flaw.remedy)
        if isinstance(node, Scalar):
            return self._whole(node) if isinstance(node.value, str) else node.value
        if len(path) >= MAX_DEPTH:
            raise too_deep(node.offset)
        if isinstance(node, Items):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
        return self._mapping(node, path)

    def _mapping(self, node: Entries, path: Path) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for key, value in node.pairs:
            name = self._name(key)
            if name is None:
                continue
            at, place = (*path, name), self._place(key.offset)
            if name in found:
                lines = f"on line {self.places[at].line} and on line {place.line}"
                message = f"The key {preview(name)} is given twice, {lines}."
                self._report(key, message, "Remove one of the two.", "W003")
            else:
                self.places[at] = place
                found[name] = self.value(value, at)
        return found

    def _name(self, key: Node) -> str | None:
        """The name that a key gives, or None when it gives none."""
        if key.flaw:
            self._report(key, key.flaw.message, key.flaw.remedy)
            return None
        if not isinstance(key, Scalar):
            self._report(key, "A list or a mapping cannot be a key.", "Use a string as key.")
            return None
        if isinstance(key.value, str):
            return self._whole(key)
        kind = type_names.get(kind_of(key.value), "null")
        message = f"The key {preview(key.text)} is {kind}; keys are strings."
        self._report(key, message, "Put it into quotes.")
        return key.text

    def _whole(self, node: Scalar) -> str:
        """The string of a node, pairs of surrogates joined; half a pair can be stored nowhere."""
        self._spend(node.offset, characters=len(node.value))
        raw = node.value.encode("utf-16", "surrogatepass")
        try:
            return raw.decode("utf-16")
        except UnicodeDecodeError:
            message = "The string holds half of a surrogate pair."
            self._report(node, message, "Write the whole character.")
            return raw.decode("utf-16", "replace")

    def _spend(self, offset: int, *, values: int = 0, characters: int = 0) -> None:
        self._values += values
        self._characters += characters
        if self._values > MAX_VALUES or self._characters > MAX_BYTES:
            message = f"The file unfolds to over {MAX_VALUES} values or {MAX_BYTES} characters."
            raise Refused("W005", offset, message, "Declare less, or use fewer aliases.")

    def _place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)

    def _report(self, node: Node, message: str, remedy: str, code: str = "W006") -> None:
        line = self._place(node.offset).line
        self.problems.append(Diagnostic(self._file, line, code, message, remedy))
