"""Facts about the context of a turn: what was gathered, shown and withheld."""

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
    """One item of a slice, identified by its digest; its text is stored where the run first has it.

    `provider` is the chain of providers that returned it; `artifact` is the id of the artifact it
    shows, and `redacted` lists the redacted paths of its payload. `visibility` is that of its
    inputs.
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
    """One call of a provider: the number of its items, its duration in microseconds, or its
    error."""

    provider: str
    items: int
    micros: int
    error: str = ""


class ContextGathered(Fact, frozen=True):
    """The slice of a provider, or of its fallback, for a turn.

    `inputs` are the inputs of the turn as shown, if they differ from the originals. `cut` says that
    a limit dropped older items.
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
    """A provider raised, timed out or returned no slice; `fallback` is called in its place."""

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
    """One search result, identified by the digest of its content; `text` is stored where the run
    first has it."""

    digest: str
    score: float
    source_id: str
    chunk: int = 0
    metadata: Mapping[str, Json] = {}
    text: str | None = None
    visibility: Visibility = Public()


class RetrievalSearched(Fact, frozen=True):
    """A search of a collection: its query, results and duration in microseconds.

    `turn` and `agent` are those of the first such search in the run; `reader` identifies that agent
    with its labels and tenant if other readers may get other results. `results` are up to twice
    `top_k`, with any score; `min_relevance` is the threshold for use. `is_empty` says that the
    collection was empty.
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
    """A summary replaced the messages of the events `first` to `last`, which stay in the log;
    `digest` is their running digest, `visibility` that of all of them."""

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
    """One piece of a frame, identified by its digest; its text is stored where the run first has
    it, and `marks` are the positions of secrets in it."""

    kind: str
    origin: str
    digest: str
    tokens: int
    reason: str = ""
    text: str | None = None
    marks: tuple[Mark, ...] = ()


class Span(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The history shown in a frame: its events and their running digest."""

    first: int
    last: int
    count: int
    tokens: int
    digest: str


class Withheld(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Something that a declaration names but the frame does not show."""

    origin: str
    reason: str
    detail: str = ""


class FrameAssembled(Fact, frozen=True):
    """Everything that a turn is shown, in order, recorded before the model call.

    The view is the system text. The first frame that shows it lists its segments; later frames
    refer to that one in `as_in`. The history follows the view. `visibility` is that of everything
    shown.
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
