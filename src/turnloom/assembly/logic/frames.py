"""Frames: what a turn is shown, in pieces, and as one text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnloom.assembly.events import FrameAssembled, Segment, Span, Withheld
from turnloom.assembly.spec import Message, Piece
from turnloom.assembly.spec.formats import FIELDS
from turnloom.kernel.digests import chain, digest

COUNTER = "characters/4"
EMPTY = digest("")


def estimate(text: str) -> int:
    """How many tokens a text has, about: a quarter of its characters, rounded up."""
    return (len(text) + 3) // 4


def counter_name(name: str, version: str) -> str:
    """What a frame calls what counted its tokens; a first version goes without saying."""
    return name if version == "1" else f"{name}@{version}"


def piece(kind: str, origin: str, text: str, reason: str) -> Piece:
    """A piece of context with its digest and its size."""
    return Piece(kind, origin, text, digest(text), estimate(text), reason)


# Kinds of pieces that describe tools and outputs; they come after what was said.
SCHEMAS = frozenset({"tool", "output"})

# Kinds of pieces that sources gave.
SOURCED = frozenset(f"context.{kind}" for kind in FIELDS)

# Kinds of pieces that stand together under the head of the context.
CONTEXT = SOURCED | {"context", "artifact"}

# Kinds of pieces that are given beside the system text.
BESIDE = SCHEMAS | CONTEXT | {"message", "input", "prompt"}


def rendered(schema: msgspec.Struct) -> str:
    """A schema as it stands in a prompt, the separator before it included."""
    return f"\n\n{msgspec.json.encode(schema, order='deterministic').decode()}"


def apart(each: Piece) -> Piece:
    """A piece that begins a paragraph of its own."""
    return piece(each.kind, each.origin, f"\n\n{each.text}", each.reason)


class View(NamedTuple):
    """The system text of an agent at a moment, in pieces, and what was left out of it."""

    pieces: tuple[Piece, ...]
    withheld: tuple[Withheld, ...]
    text: str
    tokens: int
    digest: str


def view(pieces: Sequence[Piece], withheld: Sequence[Withheld]) -> View:
    """Pieces put together once, so that turns in which nothing changed share them."""
    parts = [f"{each.origin} {each.digest}" for each in pieces]
    parts += [f"{each.origin} {each.reason}" for each in withheld]
    return View(
        tuple(pieces),
        tuple(withheld),
        "".join([each.text for each in pieces if each.kind not in BESIDE]),
        sum([each.tokens for each in pieces]),
        chain(*parts),
    )


def recounted(shown: View, count: Callable[[str, str], int]) -> View:
    """A view with its tokens counted otherwise; `count` gets a text and its digest."""
    pieces = tuple(each._replace(tokens=count(each.text, each.digest)) for each in shown.pieces)
    return shown._replace(pieces=pieces, tokens=sum(each.tokens for each in pieces))


def is_counted_alike(shown: View, segments: Sequence[Segment]) -> bool:
    """Whether segments that show the same have the same tokens: a run may go on where another
    counter is installed."""
    return all(one.tokens == its.tokens for one, its in zip(shown.pieces, segments, strict=True))


def spoken(author: str, text: str) -> str:
    """One message as it stands in a prompt, the separator before it included."""
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
    """The frame of a turn; what the run already holds is referred to."""
    segments = () if as_in else tuple([_segment(each, known) for each in shown.pieces])
    return FrameAssembled(
        turn,
        agent,
        shown.digest,
        history,
        shown.tokens + history.tokens,
        counter,
        chain(shown.digest, history.digest),
        as_in,
        segments,
        () if as_in else shown.withheld,
    )


def _segment(each: Piece, known: Mapping[str, str]) -> Segment:
    text = None if each.digest in known else each.text
    return Segment(each.kind, each.origin, each.digest, each.tokens, each.reason, text)


def system_text(segments: Iterable[Segment], texts: Mapping[str, str]) -> str:
    """The system text that recorded segments make, from the texts that the run holds."""
    return "".join(texts[each.digest] for each in segments if each.kind not in BESIDE)


def prompt_text(system: str, messages: Iterable[Message]) -> str:
    """The whole prompt as one text: what an engine was given, to the byte."""
    return system + "".join(spoken(message.author, message.text) for message in messages)
