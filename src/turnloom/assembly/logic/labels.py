"""Who may see what is made of several things: only who may see each of them."""

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
    Tenant,
    Visibility,
)
from turnloom.errors import InvalidArtifact

# Those who admit everybody of the tenant.
_EVERYBODY = (Public(), Shared())


def together(visibilities: Iterable[Visibility]) -> Audience:
    """The visibility of what is made of things with these, in as few as say it: whoever all of them
    admit may see it, and nothing stands for everybody of the tenant."""
    narrow = {each for each in visibilities if each not in _EVERYBODY}
    if not narrow:
        return ()
    found: list[Visibility] = []
    for each in sorted(narrow, key=write_visibility):
        for place, other in enumerate(found):
            try:
                found[place] = combine((other, each))
                break
            except InvalidArtifact:  # no one visibility says both, so both are said
                continue
        else:
            found.append(each)
    return tuple(each for each in found if each not in _EVERYBODY)


def readable(messages: Sequence[Message], reader: Reader) -> Sequence[Message]:
    """What of what was said a reader may read. What was to open later is found on the board then:
    what was said does not change."""
    return [each for each in messages if may_see(each.visibility, reader, ALWAYS)]


def combine(visibilities: Iterable[Visibility]) -> Visibility:
    """The visibility of what is made of things with these: whoever may see it may see them all, and
    the other way round.

    Raises:
        InvalidArtifact: nobody may see them all, or no visibility says who may.
    """
    begin, audience = ALWAYS, None
    for each in visibilities:
        begins, other = opening(each)
        begin, audience = max(begin, begins), _both(audience or Shared(), other)
    audience = audience or Public()
    return After(begin, audience) if begin > ALWAYS else audience


def _both(one: object, other: object) -> Visibility:
    """Whom both admit, once their instants have come."""
    match one, other:
        case (Shared(), Shared() | Public() | Private() | Labelled() | Tenant() as rest):
            return rest
        case (Public() | Private() | Labelled() | Tenant() as rest, Shared()):
            return rest
        case (Public(), Public() | Private() | Labelled() | Tenant() as rest):
            return rest
        case (Private() | Labelled() | Tenant() as rest, Public()):
            return rest
        case Private(agents=a), Private(agents=b) if a & b:
            return Private(a & b)
        case Labelled(labels=a), Labelled(labels=b):
            return Labelled(a | b)
        case (Tenant(tenant_id=a) as rest, Tenant(tenant_id=b)) if a == b:
            return rest
        case _:
            raise InvalidArtifact(
                f"No visibility lets in those, and only those, who may see both {one!r} and "
                f"{other!r}. Make it of less, or say yourself who may see it."
            )
