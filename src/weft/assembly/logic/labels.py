"""Who may see what is made of several things: only who may see each of them."""

from collections.abc import Iterable

from weft.board.logic.seeing import ALWAYS, opening
from weft.board.spec import After, Labelled, Private, Public, Tenant, Visibility
from weft.errors import InvalidArtifact


def combine(visibilities: Iterable[Visibility]) -> Visibility:
    """The visibility of what is made of things with these: whoever may see it may see them all, and
    the other way round.

    Raises:
        InvalidArtifact: nobody may see them all, or no visibility says who may.
    """
    begin, audience = ALWAYS, Public()
    for each in visibilities:
        begins, other = opening(each)
        begin, audience = max(begin, begins), _both(audience, other)
    return After(begin, audience) if begin > ALWAYS else audience


def _both(one: object, other: object) -> Visibility:
    """Whom both admit, once their instants have come."""
    match one, other:
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
