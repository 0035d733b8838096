"""Where the items of a slice come from: which provider, which artifact, and what they leave out."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from weft.assembly.logic.items import Item, with_payload
from weft.board.spec import Artifact
from weft.kernel.values import Json, as_array, as_object
from weft.variables.logic.types import apart, same


class Witnessed(list[Artifact]):
    """Artifacts as they were when they were given out, whatever becomes of those."""

    def note(self, artifacts: Iterable[Artifact]) -> None:
        """Take notice of artifacts that are given out."""
        self.extend(with_payload(each, each.payload) for each in artifacts)


class Known:
    """The artifacts that the providers of a turn may speak of."""

    def __init__(self, artifacts: Iterable[Artifact]) -> None:
        self._by_id: dict[str, Artifact] = {}
        for each in artifacts:
            self._by_id.setdefault(each.id, each)

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    def get(self, id: str) -> Artifact | None:
        """The artifact of this id."""
        return self._by_id.get(id)

    @cached_property
    def _oldest_first(self) -> list[Artifact]:
        return sorted(self._by_id.values(), key=lambda each: (each.created_at, each.id))

    def closest(self, item: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The artifact that an item shows with the fewest redactions, the oldest of several, and
        these; none if the item says something that no artifact does."""
        payload = as_object(item.get("payload"))
        found, fewest = "", None
        for each in self._oldest_first if payload is not None else ():
            if item.get("type", each.type) != each.type:
                continue
            if item.get("produced_by", each.produced_by) != each.produced_by:
                continue
            enough = None if fewest is None else len(fewest)
            paths = tuple(islice(lost(each.payload, payload), enough))
            if len(paths) != enough and _is_rest(each.payload, payload):
                found, fewest = each.id, paths
            if fewest == ():
                break
        return found, fewest or ()


def attribute(item: dict[str, Any], provider: str, known: Known) -> Item:
    """An item of a provider with its origin; one that was passed on as it is keeps what it has."""
    if not isinstance(item, Item):
        return Item(apart(item), provider, *_origin(item, item.get("artifact_id"), known))
    if not item.changed:
        return item
    artifact, paths = _origin(item, item.get("artifact_id", item.artifact or None), known)
    return Item(apart(item), provider, artifact, (*item.redacted, *paths))


def _origin(item: dict[str, Any], id: str | None, known: Known) -> tuple[str, tuple[str, ...]]:
    if id is None:
        return known.closest(item)
    artifact = known.get(id)
    # A text in place of the payload tells of the whole: nothing was taken out of it.
    if artifact is None or as_object(item.get("payload")) is None:
        return id, ()
    return id, tuple(lost(artifact.payload, item["payload"]))


def lost(whole: Json, shown: Json, path: str = "") -> Iterator[str]:
    """The paths at which something is missing or is not what it was."""
    these, those = as_object(whole), as_object(shown)
    if these is not None and those is not None:
        for name, each in these.items():
            here = f"{path}.{name}" if path else name
            if name in those:
                yield from lost(each, those[name], here)
            else:
                yield here
        return
    ones, others = as_array(whole), as_array(shown)
    if ones is not None and others is not None and len(ones) == len(others):
        for number, (one, other) in enumerate(zip(ones, others, strict=True)):
            yield from lost(one, other, f"{path}.{number}")
    elif not same(whole, shown):
        yield path


def _is_rest(whole: Json, shown: Json) -> bool:
    """Whether something of a payload is shown, and nothing beside it."""
    return not _adds(whole, shown) and _keeps(whole, shown)


def _adds(whole: Json, shown: Json) -> bool:
    these, those = as_object(whole), as_object(shown)
    if these is not None and those is not None:
        return any(name not in these or _adds(these[name], those[name]) for name in those)
    return any(_adds(one, other) for one, other in _pairs(whole, shown))


def _keeps(whole: Json, shown: Json) -> bool:
    these, those = as_object(whole), as_object(shown)
    if these is not None and those is not None:
        kept = any(name in those and _keeps(these[name], those[name]) for name in these)
    else:
        kept = any(_keeps(one, other) for one, other in _pairs(whole, shown))
    return kept or same(whole, shown)


def _pairs(whole: Json, shown: Json) -> list[tuple[Json, Json]]:
    ones, others = as_array(whole), as_array(shown)
    if ones is None or others is None or len(ones) != len(others):
        return []
    return list(zip(ones, others, strict=True))
