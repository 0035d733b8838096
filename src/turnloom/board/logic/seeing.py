"""Who may see what, and from when."""

from datetime import UTC, datetime

from turnloom.board.spec import After, Labelled, Private, Public, Reader, Shared, Tenant
from turnloom.board.spec.visibility import is_visibility

# Before everything.
ALWAYS = datetime.min.replace(tzinfo=UTC)


def may_see(visibility: object, reader: Reader, now: datetime) -> bool:
    """Whether a reader may see something of its tenant now; what is no visibility shows nothing."""
    begin = visible_from(visibility, reader)
    return begin is not None and begin <= now


def visible_from(visibility: object, reader: Reader) -> datetime | None:
    """The instant from which a reader may see something of its tenant; none if never."""
    if reader.role == "developer":
        return ALWAYS if is_visibility(visibility) else None
    begin, audience = opening(visibility)
    return begin if _admits(audience, reader) else None


def opening(visibility: object) -> tuple[datetime, object]:
    """When the last of nested instants has come, and who may see it from then on."""
    begin = ALWAYS
    while isinstance(visibility, After):
        begin = max(begin, visibility.at)
        visibility = visibility.then
    return begin, visibility


def _admits(audience: object, reader: Reader) -> bool:
    match audience:
        case Public() | Shared():
            return True
        case Private(agents=agents):
            return reader.agent in agents
        case Labelled(labels=labels):
            return labels <= reader.labels
        case Tenant(tenant_id=tenant):
            return reader.tenant == tenant
        case _:
            return False
