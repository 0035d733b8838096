"""What was gathered for a turn, what it was shown, and what it was not."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from turnloom.board.spec import Audience, Public, Visibility
from turnloom.kernel.marks import Mark
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact


class GatheredItem(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """One item of a slice, known by its digest; its text stands where the run first has it.

    `provider` is who gave it, inside whom; `artifact` is the id of what it shows, and `redacted`
    are the paths of the payload that it does not show as they are. `visibility` is that of what it
    was made of.
    """

    digest: str
    provider: str
    artifact: str = ""
    redacted: tuple[str, ...] = ()
    text: str | None = None
    visibility: Audience = ()


class ProviderCall(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """One call of a provider: how many items it gave in how many microseconds, or its error."""

    provider: str
    items: int
    micros: int
    error: str = ""


class ContextGathered(Fact, frozen=True):
    """What a provider, or the fallback in its place, gave for a turn.

    `inputs` is how the inputs of the turn are shown, where that is not as they are. `cut` says that
    a limit left older items out.
    """

    kind: ClassVar[str] = "context.gathered"
    recorded: ClassVar[frozenset[str]] = frozenset({"provider", "items", "inputs", "calls"})
    turn: int
    agent: str
    provider: str
    items: tuple[GatheredItem, ...]
    calls: tuple[ProviderCall, ...]
    metadata: Mapping[str, Json] = {}
    inputs: tuple[GatheredItem, ...] | None = None
    fallback: bool = False
    cut: bool = False


class ProviderFailed(Fact, frozen=True):
    """A provider raised, took too long or gave no slice; `fallback` is asked in its place."""

    kind: ClassVar[str] = "provider.failed"
    turn: int
    agent: str
    provider: str
    error: str
    message: str
    fallback: str = ""


class FoundResult(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """One result of a search, known by the digest of its content; `text` is that content, where the
    run first has it."""

    digest: str
    score: float
    source_id: str
    chunk: int = 0
    metadata: Mapping[str, Json] = {}
    text: str | None = None
    visibility: Visibility = Public()


class RetrievalSearched(Fact, frozen=True):
    """A collection was searched: for what, and what was found in how many microseconds.

    `turn` and `agent` are those that it was first searched for in the run; `reader` stands for that
    agent with its labels and its tenant where others might find something else. `results` are up to
    twice `top_k`, whatever they score; `min_relevance` says which of them were relevant enough.
    `is_empty` says that there was nothing in the collection.
    """

    kind: ClassVar[str] = "retrieval.searched"
    recorded: ClassVar[frozenset[str]] = frozenset({"query", "results"})
    turn: int
    agent: str
    collection: str
    query: str
    top_k: int
    min_relevance: float
    results: tuple[FoundResult, ...]
    micros: int
    filters: Mapping[str, Json] = {}
    reader: str = ""
    is_empty: bool = False


class HistorySummarised(Fact, frozen=True):
    """A text was made in the place of messages: those of the events `first` to `last`, which stay
    on record; `digest` is their running digest. `visibility` is that of all of them."""

    kind: ClassVar[str] = "history.summarised"
    turn: int
    agent: str
    first: int
    last: int
    count: int
    digest: str
    text: str
    visibility: Audience = ()


class Segment(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """One piece of a frame, known by its digest; its text stands where the run first has it, and
    `marks` say where secrets stand in that."""

    kind: str
    origin: str
    digest: str
    tokens: int
    reason: str = ""
    text: str | None = None
    marks: tuple[Mark, ...] = ()


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
    later ones name that frame in `as_in`. The history follows the view. `visibility` is that of
    everything that it shows.
    """

    kind: ClassVar[str] = "frame.assembled"
    recorded: ClassVar[frozenset[str]] = frozenset({"segments", "withheld"})
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
    visibility: Audience = ()
