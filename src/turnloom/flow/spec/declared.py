"""A flow as it was written down, right or wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnloom.flow.spec.nodes import Line, Site


class Misplaced(NamedTuple):
    """A call that came after another that is to be the last, or before `start_with` if `after` is
    empty."""

    call: str
    site: Site
    after: str


class Declared(NamedTuple):
    """A flow as it was built, and the calls that came before or after their time."""

    name: str
    state: Any
    main: Line
    failure: Line | None
    misplaced: Sequence[Misplaced]
    timeout: float | None
    is_ended: bool
    variables: Mapping[str, Any]
    migrate: Any
