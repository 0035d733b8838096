"""Word diff of two texts."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from turnloom.explain.spec.diff import WordChange

# A mark of a secret is one word.
_WORDS = re.compile(r"⟨secret:[^⟩]*⟩|\w+|\s+|[^\w\s]")

# Longer stretches are compared by lines only: comparing words takes quadratic time.
WORDS = 4_000
LINES = 4_000


def word_diff(before: str, after: str) -> tuple[WordChange, ...]:
    """Compare two texts, by lines and then by words: what is in both, gone, and added, in order."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found: list[WordChange] = []
    for change in _by_lines(old, new):
        if found and found[-1].change == change.change:
            found[-1] = WordChange(change.change, found[-1].text + change.text)
        elif change.text:
            found.append(change)
    return tuple(found)


def _by_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[WordChange]:
    is_long = len(old) + len(new) > LINES
    matcher = SequenceMatcher(None, old, new, autojunk=is_long)
    for operation, a, b, c, d in matcher.get_opcodes():
        gone, added = "".join(old[a:b]), "".join(new[c:d])
        if operation == "equal":
            yield WordChange("same", gone)
        else:
            yield from _by_words(gone, added)


def _by_words(before: str, after: str) -> Iterator[WordChange]:
    """Compare two texts by words; spaces between two changed words belong to the change."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) + len(new) > WORDS:
        yield from _replaced(before, after)
        return
    gone, added = "", ""
    for operation, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        was, now = "".join(old[a:b]), "".join(new[c:d])
        if operation != "equal" or (was.isspace() and (gone or added) and b < len(old)):
            gone, added = gone + was, added + now
            continue
        yield from _replaced(gone, added)
        gone, added = "", ""
        yield WordChange("same", was)
    yield from _replaced(gone, added)


def _replaced(gone: str, added: str) -> Iterator[WordChange]:
    if gone:
        yield WordChange("gone", gone)
    if added:
        yield WordChange("added", added)
