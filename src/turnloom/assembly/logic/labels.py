"""Visibility of combined content: only readers who may see every part may see the whole."""

from collections.abc import Iterable, Sequence

from turnloom.assembly.spec.providers import Message
from turnloom.board.logic.matching import ALWAYS, may_see, opening
from turnloom.board.logic.rows import write_visibility
from turnloom.board.spec import (
    After,
    Audience,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    Visibility,
)
from turnloom.board.spec.artifacts import KINDS, OpenVisibility, choice_of, is_visibility
from turnloom.errors import InvalidArtifact

# Visibilities that admit everyone of the tenant.
_EVERYBODY = (Public(), Shared())


def together(visibilities: Iterable[Visibility]) -> Audience:
    """The visibility of content made of parts with these visibilities, as few as possible; empty
    means everyone of the tenant."""
    narrow = {each for each in visibilities if each not in _EVERYBODY}
    if not narrow:
        return ()
    found: list[Visibility] = []
    for each in sorted(narrow, key=write_visibility):
        for place, other in enumerate(found):
            try:
                found[place] = combine((other, each))
                break
            except InvalidArtifact:  # no single visibility expresses both, so keep both
                continue
        else:
            found.append(each)
    return tuple(each for each in found if each not in _EVERYBODY)


def readable(messages: Sequence[Message], reader: Reader) -> Sequence[Message]:
    """The messages that a reader may see. Messages that open later stay hidden: the history does
    not change afterwards."""
    return [each for each in messages if may_see(each.visibility, reader, ALWAYS)]


def combine(visibilities: Iterable[Visibility]) -> Visibility:
    """The visibility that admits exactly the readers who may see all of these.

    Raises:
        InvalidArtifact: one is not a visibility, no reader may see all of them, or no visibility
            expresses it.
    """
    begin, audience = ALWAYS, None
    for each in visibilities:
        if not is_visibility(each):
            raise InvalidArtifact(f"{each!r} is not a visibility. Use {choice_of(KINDS)}.")
        begins, other = opening(each)
        begin, audience = max(begin, begins), _both(audience or Shared(), other)
    audience = audience or Public()
    return After(begin, audience) if begin > ALWAYS else audience


def _both(one: OpenVisibility, other: OpenVisibility) -> OpenVisibility:
    """The visibility that both allow, once both are open."""
    match one, other:
        case (Shared(), rest) | (rest, Shared()):
            return rest
        case (Public(), rest) | (rest, Public()):
            return rest
        case _ if one == other:
            return one
        case Private(agents=a), Private(agents=b) if a & b:
            return Private(a & b)
        case Labelled(labels=a), Labelled(labels=b):
            return Labelled(a | b)
        case _:
            raise InvalidArtifact(
                f"No visibility combines {one!r} and {other!r}. Use fewer inputs, or set the "
                "visibility explicitly."
            )
