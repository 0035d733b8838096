"""Names of tools as the providers of models take them."""

import re
from collections.abc import Iterable
from itertools import chain, count

# The longest name of a tool that all providers take.
LONGEST = 64

_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def plainly(name: str) -> str:
    """A name as letters, digits, `_` and `-`."""
    return _OTHER.sub("_", name)[:LONGEST] or "_"


def spelled(names: Iterable[str]) -> dict[str, str]:
    """Each name as letters, digits, `_` and `-`; a number tells apart what would be the same."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = plainly(name)
        numbered = (f"{plain[: LONGEST - 4]}_{number}" for number in count(2))
        found[name] = next(each for each in chain((plain,), numbered) if each not in taken)
        taken.add(found[name])
    return found
