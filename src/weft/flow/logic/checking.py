"""What is wrong with a flow: all at once, numbered, at the lines that made the calls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.errors import Diagnostic
from weft.flow.spec.nodes import Line, Site


class Declared(NamedTuple):
    """A flow as it was built, and the calls that came before or after their time."""

    name: str
    state: Any
    main: Line
    failure: Line | None
    misplaced: Sequence[tuple[str, Site]]
    timeout: float | None
    is_ended: bool


def check(declared: Declared) -> list[Diagnostic]:
    """Every problem of a flow."""
    return []
