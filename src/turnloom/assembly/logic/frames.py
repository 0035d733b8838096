"""Frames: the segments that a turn is shown, and their text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    GatheredItem,
    Segment,
    Span,
    Withheld,
)
from turnloom.assembly.logic.slices import written_artifact
from turnloom.assembly.spec import Message, Piece
from turnloom.assembly.spec.formats import FIELDS
from turnloom.board.spec import Artifact
from turnloom.kernel.digests import chain_digest, digest

COUNTER = "characters/4"
EMPTY = digest("")


def estimate(text: str) -> int:
    """The estimated tokens of a text: a quarter of its characters, rounded up."""
    return (len(text) + 3) // 4


def counter_name(name: str, version: str) -> str:
    """The name of a token counter in frames; version 1 is omitted."""
    return name if version == "1" else f"{name}@{version}"


def piece(kind: str, origin: str, text: str, reason: str) -> Piece:
    """A piece of context with its digest and tokens."""
    return Piece(kind, origin, text, digest(text), tokens=estimate(text), reason=reason)


# Cached, for declared texts, which recur in every turn.
declared_piece = lru_cache(maxsize=256)(piece)


# Kinds of pieces that describe tools and outputs; they follow the messages.
SCHEMAS = frozenset({"tool", "output"})

# Kinds of pieces that come from sources.
SOURCED = frozenset(f"context.{kind}" for kind in FIELDS)

# Kinds of pieces under the context header.
CONTEXT = SOURCED | {"context", "artifact"}

# Kinds of pieces outside the system text.
BESIDE = SCHEMAS | CONTEXT | {"message", "input", "prompt"}


def rendered(schema: msgspec.Struct) -> str:
    """A schema as it appears in a prompt, with the separator before it."""
    return f"\n\n{msgspec.json.encode(schema, order='deterministic').decode()}"


def apart(each: Piece) -> Piece:
    """A piece that starts a new paragraph."""
    return piece(each.kind, each.origin, f"\n\n{each.text}", each.reason)


class View(NamedTuple):
    """The system text of an agent at a moment, in pieces, and what was withheld."""

    pieces: tuple[Piece, ...]
    withheld: tuple[Withheld, ...]
    text: str
    tokens: int
    digest: str


def view(pieces: Sequence[Piece], withheld: Sequence[Withheld]) -> View:
    """A view of pieces; turns in which nothing changed share it."""
    parts = [f"{each.origin} {each.digest}" for each in pieces]
    parts += [f"{each.origin} {each.reason}" for each in withheld]
    return View(
        tuple(pieces),
        tuple(withheld),
        "".join([each.text for each in pieces if each.kind not in BESIDE]),
        sum([each.tokens for each in pieces]),
        digest=chain_digest(*parts),
    )


def recounted(shown: View, count: Callable[[str, str], int]) -> View:
    """A view with its tokens counted by `count`, which takes a text and its digest."""
    pieces = tuple(each._replace(tokens=count(each.text, each.digest)) for each in shown.pieces)
    return shown._replace(pieces=pieces, tokens=sum(each.tokens for each in pieces))


def is_counted_alike(shown: View, segments: Sequence[Segment]) -> bool:
    """Whether segments have the same tokens as the view: a run may continue where another counter
    is installed."""
    return all(one.tokens == its.tokens for one, its in zip(shown.pieces, segments, strict=True))


def spoken(author: str, text: str) -> str:
    """A message as it appears in a prompt, with the separator before it."""
    return f"\n\n{author}: {text}"


def frame(
    turn: int,
    agent: str,
    shown: View,
    history: Span,
    as_in: int,
    known: Mapping[str, str],
    counter: str = COUNTER,
) -> FrameAssembled:
    """The frame of a turn; texts that the run already has are referenced."""
    segments = () if as_in else tuple([_segment(each, known) for each in shown.pieces])
    return FrameAssembled(
        turn,
        agent,
        shown.digest,
        history,
        tokens=shown.tokens + history.tokens,
        counter=counter,
        digest=chain_digest(shown.digest, history.digest),
        as_in=as_in,
        segments=segments,
        withheld=() if as_in else shown.withheld,
    )


def _segment(each: Piece, known: Mapping[str, str]) -> Segment:
    text = None if each.digest in known else each.text
    return Segment(each.kind, each.origin, each.digest, each.tokens, reason=each.reason, text=text)


def system_text(segments: Iterable[Segment], texts: Mapping[str, str]) -> str:
    """The system text of recorded segments, from the texts of the run."""
    return "".join(texts[each.digest] for each in segments if each.kind not in BESIDE)


def prompt_text(system: str, messages: Iterable[Message]) -> str:
    """The whole prompt as one text, exactly as the engine received it."""
    return system + "".join(spoken(message.author, message.text) for message in messages)


# The reason of an input without redactions.
AS_IT_IS = "as it is"


def texts_of(gathered: ContextGathered) -> dict[str, str]:
    """The texts by digest that this fact adds to the run."""
    items = (*gathered.items, *(gathered.inputs or ()))
    return {each.digest: each.text for each in items if each.text is not None}


# The author of context and inputs in a prompt, and the origin of the input header.
AUTHOR = "user"
INPUTS = "input"


def context_pieces(gathered: ContextGathered, texts: Mapping[str, str]) -> list[Piece]:
    """The gathered items under a header; empty if there are none.

    `texts` has the earlier texts of the run, by digest.
    """
    if not gathered.items:
        return []
    head = declared_piece(
        "context", "context", spoken(AUTHOR, "Context:"), "heads what was gathered"
    )
    items = [
        piece("artifact", each.provider, text, _reason(each))
        for each, text in zip(gathered.items, item_texts(gathered, texts), strict=True)
    ]
    return [head, *items]


def item_texts(gathered: ContextGathered, texts: Mapping[str, str]) -> list[str]:
    """The texts of the gathered items; `texts` has the earlier texts of the run."""
    own = texts_of(gathered)
    return [_text(each, own, texts) for each in gathered.items]


def input_texts(gathered: ContextGathered, texts: Mapping[str, str]) -> list[str]:
    """The texts of the inputs as shown; `texts` has the earlier texts of the run."""
    own = texts_of(gathered)
    return [_text(each, own, texts) for each in gathered.inputs or ()]


def headed(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of assembled context under a header; empty if there are none."""
    if not pieces:
        return []
    head = declared_piece("context", "context", spoken(AUTHOR, "Context:\n"), "heads the context")
    return [head, *(each._replace(kind=f"context.{each.kind}") for each in pieces)]


def input_pieces(
    inputs: Sequence[Artifact], gathered: ContextGathered | None, texts: Mapping[str, str]
) -> list[Piece]:
    """The inputs of a turn under a header, as changed by its providers; empty without inputs."""
    if not inputs:
        return []
    head = declared_piece("input", INPUTS, spoken(AUTHOR, "Input:"), "heads what the turn is about")
    if gathered is None or gathered.inputs is None:
        entries = [(each.id, written_artifact(each), AS_IT_IS) for each in inputs]
    else:
        shown = zip(gathered.inputs, input_texts(gathered, texts), strict=True)
        entries = [(each.artifact, text, _without(each) or AS_IT_IS) for each, text in shown]
    return [head, *(piece("input", f"artifact {id}", text, why) for id, text, why in entries)]


def left_out(gathered: ContextGathered) -> list[Withheld]:
    """The redacted or omitted parts of items and inputs."""
    if not gathered.cut:
        return _redactions(gathered)
    shown = f"shows the last {len(gathered.items)}"
    return [Withheld(gathered.provider, "over_limit", shown), *_redactions(gathered)]


def _redactions(gathered: ContextGathered) -> list[Withheld]:
    return [
        Withheld(f"{_whole(each)}.{path}", "redacted", each.provider)
        for each in (*gathered.items, *(gathered.inputs or ()))
        for path in each.redacted
    ]


def _text(item: GatheredItem, own: Mapping[str, str], texts: Mapping[str, str]) -> str:
    return own[item.digest] if item.digest in own else texts[item.digest]


def _reason(item: GatheredItem) -> str:
    shown = f"artifact {item.artifact}" if item.artifact else "no artifact"
    return "; ".join(part for part in (shown, _without(item)) if part)


def _without(item: GatheredItem) -> str:
    return f"without {', '.join(item.redacted)}" if item.redacted else ""


def _whole(item: GatheredItem) -> str:
    return f"artifact {item.artifact}" if item.artifact else item.provider
