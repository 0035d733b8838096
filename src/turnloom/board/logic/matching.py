"""Whether a reader may see an artifact, and whether a filter matches it."""

from collections.abc import Set
from datetime import UTC, datetime
from typing import Any

from turnloom.board.spec import (
    After,
    Artifact,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    TagFilter,
    Tenant,
    TypeRegistry,
    Visibility,
    Where,
)
from turnloom.board.spec.artifacts import OpenVisibility, is_visibility
from turnloom.board.spec.queries import ArtifactContent
from turnloom.kernel.values import Json, as_array, as_object

# Marks a missing value, unlike null.
_NOWHERE = object()


def resolve_types(filter: FilterConfig, types: TypeRegistry) -> FilterConfig:
    """The filter with full type names.

    Raises:
        UnknownType: a type name is unknown or ambiguous.
    """
    if filter.types is None:
        return filter
    return filter.model_copy(update={"types": frozenset(map(types.resolve, filter.types))})


def matches(filter: FilterConfig, artifact: Artifact | ArtifactContent) -> bool:
    """Whether an artifact matches the filter; type names are full."""
    return (
        (filter.types is None or artifact.type in filter.types)
        and (filter.produced_by is None or artifact.produced_by in filter.produced_by)
        and (filter.runs is None or artifact.run in filter.runs)
        and filter.correlation_id in (None, artifact.correlation_id)
        and filter.partition in (None, artifact.partition)
        and (filter.since is None or filter.since <= artifact.created_at)
        and (filter.until is None or artifact.created_at <= filter.until)
        and (filter.tags is None or tagged(filter.tags, artifact.tags))
        and all(holds(where, artifact.payload) for where in filter.where)
    )


def holds(where: Where, payload: Json) -> bool:
    """Whether a payload meets a condition; at a missing path, only the absence check can hold."""
    path, operator, value = where
    found = value_at(payload, path, _NOWHERE)
    if operator == "exists":
        return (found is not _NOWHERE) is value
    return found is not _NOWHERE and _compare(operator, found, value)


def tagged(filter: TagFilter, tags: Set[str]) -> bool:
    """Whether tags match a filter."""
    if not tags.isdisjoint(filter.exclude):
        return False
    if filter.include is None:
        return True
    if filter.match == "any":
        return not tags.isdisjoint(filter.include)
    return bool(filter.include) and filter.include <= tags


def value_at(payload: Json, path: str, missing: Any = None) -> Any:
    """The value at a path of a payload."""
    for name in path.split("."):
        inside = as_object(payload)
        if inside is None or name not in inside:
            return missing
        payload = inside[name]
    return payload


def _compare(operator: str, found: Json, value: Json) -> bool:
    match operator:
        case "eq":
            return _same(found, value)
        case "ne":
            return not _same(found, value)
        case "in":
            return any(_same(found, each) for each in value)
        case "contains":
            return _contains(found, value)
        case _:
            return _comparable(found, value) and _ordered(operator, found, value)


def _same(a: Json, b: Json) -> bool:
    """Equality of JSON values: 1 equals 1.0, and neither equals true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    these, those = as_array(a), as_array(b)
    if these is not None and those is not None:
        return len(these) == len(those) and all(map(_same, these, those))
    this, that = as_object(a), as_object(b)
    if this is not None and that is not None:
        return this.keys() == that.keys() and all(_same(this[key], that[key]) for key in this)
    return a == b


def _contains(found: Json, value: Json) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return any(_same(each, value) for each in as_array(found) or ())


def _comparable(a: Json, b: Json) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return numbers or (isinstance(a, str) and isinstance(b, str))


def _ordered(operator: str, found: Any, value: Any) -> bool:
    match operator:
        case "lt":
            return found < value
        case "le":
            return found <= value
        case "gt":
            return found > value
        case _:
            return found >= value


# Earlier than any instant.
ALWAYS = datetime.min.replace(tzinfo=UTC)


def may_see(visibility: object, reader: Reader, now: datetime) -> bool:
    """Whether a reader may see something of its tenant now; an invalid visibility hides it."""
    begin = visible_from(visibility, reader)
    return begin is not None and begin <= now


def visible_from(visibility: object, reader: Reader) -> datetime | None:
    """The instant from which a reader may see something of its tenant; None if never."""
    if not is_visibility(visibility):
        return None
    if reader.role == "developer":
        return ALWAYS
    begin, audience = opening(visibility)
    return begin if _admits(audience, reader) else None


def opening(visibility: Visibility) -> tuple[datetime, OpenVisibility]:
    """The latest of nested instants, and the audience from then on."""
    begin = ALWAYS
    while isinstance(visibility, After):
        begin = max(begin, visibility.at)
        visibility = visibility.then
    return begin, visibility


def _admits(audience: OpenVisibility, reader: Reader) -> bool:
    match audience:
        case Public() | Shared():
            return True
        case Private(agents=agents):
            return reader.agent in agents
        case Labelled(labels=labels):
            return labels <= reader.labels
        case Tenant(tenant_id=tenant):
            return reader.tenant == tenant
