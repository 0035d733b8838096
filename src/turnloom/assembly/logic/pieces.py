"""What was gathered, as pieces of a frame."""

from collections.abc import Mapping, Sequence

from turnloom.assembly.events import ContextGathered, GatheredItem, Withheld
from turnloom.assembly.logic.frames import piece, spoken
from turnloom.assembly.logic.items import described, written
from turnloom.assembly.spec import Piece
from turnloom.board.spec import Artifact

# Why an input stands there that nothing is taken out of.
AS_IT_IS = "as it is"


def texts_of(gathered: ContextGathered) -> dict[str, str]:
    """The texts by digest that the run has from this fact on."""
    items = (*gathered.items, *(gathered.inputs or ()))
    return {each.digest: each.text for each in items if each.text is not None}


# Who says in a prompt what a turn is given, and where the head of its inputs is from.
AUTHOR = "user"
INPUTS = "input"


def context_pieces(gathered: ContextGathered, texts: Mapping[str, str]) -> list[Piece]:
    """The items that were gathered, under a head; nothing where there are none.

    `texts` has, by digest, what the run held before.
    """
    if not gathered.items:
        return []
    head = piece("context", "context", spoken(AUTHOR, "Context:"), "heads what was gathered")
    items = [
        piece("artifact", each.provider, text, _reason(each))
        for each, text in zip(gathered.items, item_texts(gathered, texts), strict=True)
    ]
    return [head, *items]


def item_texts(gathered: ContextGathered, texts: Mapping[str, str]) -> list[str]:
    """The texts of the items that were gathered; `texts` has what the run held before."""
    own = texts_of(gathered)
    return [_text(each, own, texts) for each in gathered.items]


def input_texts(gathered: ContextGathered, texts: Mapping[str, str]) -> list[str]:
    """The texts of the inputs as they are shown; `texts` has what the run held before."""
    own = texts_of(gathered)
    return [_text(each, own, texts) for each in gathered.inputs or ()]


def headed(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of assembled context under a head; nothing where there are none."""
    if not pieces:
        return []
    head = piece("context", "context", spoken(AUTHOR, "Context:\n"), "heads the context")
    return [head, *(each._replace(kind=f"context.{each.kind}") for each in pieces)]


def input_pieces(
    inputs: Sequence[Artifact], gathered: ContextGathered | None, texts: Mapping[str, str]
) -> list[Piece]:
    """The inputs of a turn under a head, as its providers left them; nothing without inputs."""
    if not inputs:
        return []
    head = piece("input", INPUTS, spoken(AUTHOR, "Input:"), "heads what the turn is about")
    if gathered is None or gathered.inputs is None:
        told = [(each.id, written(described(each)), AS_IT_IS) for each in inputs]
    else:
        shown = zip(gathered.inputs, input_texts(gathered, texts), strict=True)
        told = [(each.artifact, text, _without(each) or AS_IT_IS) for each, text in shown]
    return [head, *(piece("input", f"artifact {id}", text, why) for id, text, why in told)]


def left_out(gathered: ContextGathered) -> list[Withheld]:
    """What of the items and inputs is not shown, or not as it is."""
    number = len(gathered.items)
    cut = [Withheld(gathered.provider, "over_limit", f"shows the last {number}")]
    return [*(cut if gathered.cut else ()), *_redactions(gathered)]


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
