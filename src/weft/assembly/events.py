"""What a turn was shown, and what it was not."""

from typing import ClassVar

import msgspec

from weft.log.spec import Fact


class Segment(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """One piece of a frame, known by its digest; its text stands where the run first has it."""

    kind: str
    origin: str
    digest: str
    tokens: int
    reason: str = ""
    text: str | None = None


class Span(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The history that a frame shows: the events that hold it, and their running digest."""

    first: int
    last: int
    count: int
    tokens: int
    digest: str


class Withheld(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Something that a declaration names and the frame does not show."""

    origin: str
    reason: str
    detail: str = ""


class FrameAssembled(Fact, frozen=True):
    """Everything one turn is shown, in order, recorded before it is shown.

    The system text is the view: its segments are listed in the first frame that shows it, and
    later ones name that frame in `as_in`. The history follows the view.
    """

    kind: ClassVar[str] = "frame.assembled"
    turn: int
    agent: str
    view: str
    history: Span
    tokens: int
    counter: str
    digest: str
    as_in: int = 0
    segments: tuple[Segment, ...] = ()
    withheld: tuple[Withheld, ...] = ()
