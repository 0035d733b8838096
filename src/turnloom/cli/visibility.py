"""Visibilities in options."""

from turnloom.board.spec import Labelled, Private, Public, Shared, Tenant, Visibility
from turnloom.errors import InvalidArtifact, UsageError


def visibility_of(said: str, what: str) -> Visibility:
    """Parse the visibility in an option.

    Raises:
        UsageError: it says nothing.
    """
    kind, _, who = said.partition(":")
    names = {each.strip() for each in who.split(",")}
    try:
        match kind:
            case "public" if said == kind:
                return Public()
            case "shared" if said == kind:
                return Shared()
            case "private":
                return Private(names)
            case "labelled":
                return Labelled(names)
            case "tenant":
                return Tenant(who.strip())
            case _:
                reason = ""
    except InvalidArtifact as error:
        reason = f"{error} "
    raise UsageError(
        f"{said!r} does not say who may see {what}. {reason}Write `public`, "
        "`private:ann,bob`, `labelled:staff,audit`, `tenant:acme` or `shared`."
    )
