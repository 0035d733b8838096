"""The results of a backtest of one run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from turnloom.assembly.events import FrameAssembled, RetrievalSearched
from turnloom.log.spec import Event
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.logic.secrets import NO_SECRETS, Secrets

# What is compared, and how sure a difference is.
Part = Literal["value", "route", "frame"]
Certainty = Literal["certain", "assumed", "undecided"]
PARTS: tuple[Part, ...] = ("value", "route", "frame")
CERTAINTIES: tuple[Certainty, ...] = ("certain", "assumed", "undecided")


class ComparedPart(NamedTuple):
    """A part of a fact that is compared: a value, a route or a frame, by name."""

    part: Part
    name: str
    value: object


class FrameSide(NamedTuple):
    """One segment of a frame: where it is from, and its text."""

    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class PartDifference:
    """A part that the edited definition decides otherwise. `seq` is the position of the recorded
    event, or of the last one before it. Without a recorded or a decided event, that side has
    nothing. `unknown` says what it depends on, if it is undecided. Of frames, the segments of both
    sides."""

    part: Part
    certainty: Certainty
    name: str
    seq: int
    turn: int
    recorded: Event | None = None
    decided: Event | None = None
    before: object = None
    after: object = None
    unknown: tuple[str, ...] = ()
    segments: tuple[Sequence[FrameSide], Sequence[FrameSide]] = ((), ())


class EditedFrame(NamedTuple):
    """A frame that the edited definition decides otherwise, with all its segments."""

    frame: FrameAssembled
    certainty: Certainty
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndPoint:
    """The point from which the recorded answers no longer apply, and why."""

    seq: int
    turn: int
    reason: str


class EditedThreshold(NamedTuple):
    """Another `min_relevance` for a recorded search: its results are on record with any score."""

    search: RetrievalSearched
    min_relevance: float


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A recorded run, and the edited definition that decides it again. `plan` is the text of the
    plan that a run of a board or flow is pinned to, `pinned` the definition of one of a folder.
    With a `threshold`, a search of the run has that one."""

    loaded: LoadedWorkflow
    events: Sequence[Event]
    secrets: Secrets = NO_SECRETS
    has_components: bool = False
    plan: str = ""
    pinned: LoadedWorkflow | None = None
    threshold: EditedThreshold | None = None


@dataclass(frozen=True, slots=True)
class BacktestedRun:
    """A run as the edited definition decides it: how many values, routes and frames were compared,
    the number of differences by part and certainty, the first of them, the last frame that differs,
    and the point at which the comparison ends, if that is before the end of the record."""

    run: str
    workflow: str
    form: str
    turns: int
    compared: Mapping[str, int]
    counts: Mapping[tuple[Part, Certainty], int]
    first: PartDifference | None = None
    end: EndPoint | None = None
    last_frame: EditedFrame | None = None
