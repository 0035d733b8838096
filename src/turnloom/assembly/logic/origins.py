"""Where the items of a slice come from: which provider, which artifact, and what they leave out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, overload

import msgspec

from turnloom.assembly.logic.items import Item, described
from turnloom.assembly.logic.labels import together
from turnloom.board.spec import Artifact, Audience
from turnloom.kernel.values import Json, as_array, as_object
from turnloom.variables.logic.types import apart, same

# The names that lead to an end of a payload; and that end with what it holds.
Path = tuple[str, ...]
Leaf = tuple[Path, bytes]


class Witnessed(Sequence[Artifact]):
    """Artifacts as they were when they were given out, whatever becomes of those."""

    def __init__(self) -> None:
        self._noted: list[tuple[Artifact, bytes]] = []

    def note(self, artifacts: Iterable[Artifact]) -> None:
        """Take notice of artifacts that are given out."""
        self._noted += [(each, msgspec.json.encode(each.payload)) for each in artifacts]

    def __len__(self) -> int:
        return len(self._noted)

    @overload
    def __getitem__(self, place: int) -> Artifact: ...

    @overload
    def __getitem__(self, place: slice) -> list[Artifact]: ...

    def __getitem__(self, place: int | slice) -> Artifact | list[Artifact]:
        if isinstance(place, slice):
            return [_as_noted(*each) for each in self._noted[place]]
        return _as_noted(*self._noted[place])


def _as_noted(artifact: Artifact, payload: bytes) -> Artifact:
    return msgspec.structs.replace(artifact, payload=msgspec.json.decode(payload))


class Known:
    """The artifacts that the providers of a turn may speak of."""

    def __init__(self, artifacts: Iterable[Artifact]) -> None:
        self._by_id: dict[str, Artifact] = {}
        for each in artifacts:
            self._by_id.setdefault(each.id, each)

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    @cached_property
    def visibility(self) -> Audience:
        """Who may see what was made of all of them."""
        return together(each.visibility for each in self._by_id.values())

    def get(self, id: str) -> Artifact | None:
        """The artifact of this id."""
        return self._by_id.get(id)

    @cached_property
    def _listing(self) -> "_Listing":
        artifacts = self._by_id.values()
        return _Listing(sorted(artifacts, key=lambda each: (each.created_at, each.id)))

    def closest(self, item: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The artifact that an item shows, and what it does not show of it; none if the item says
        something that no artifact does. Of several the one of which it keeps most, then the one
        of which it leaves out least, then the oldest."""
        payload = as_object(item.get("payload"))
        artifact = None if payload is None else self._listing.closest(item, leaves(payload))
        return ("", ()) if artifact is None else (artifact.id, (*lost(artifact.payload, payload),))


class _Listing:
    """Artifacts from the oldest on, found by what their payloads hold."""

    def __init__(self, artifacts: Sequence[Artifact]) -> None:
        self._artifacts = artifacts
        self._leaves = [leaves(each.payload) for each in artifacts]
        self._holders: defaultdict[Leaf, list[int]] = defaultdict(list)
        for number, each in enumerate(self._leaves):
            for leaf in each.items():
                self._holders[leaf].append(number)

    def closest(self, item: dict[str, Any], shown: Mapping[Path, bytes]) -> Artifact | None:
        holders = (self._holders.get(leaf, ()) for leaf in shown.items())
        kept = Counter(chain.from_iterable(holders))
        alike = [number for number in kept if self._is_alike(number, item)]
        most = max((kept[number] for number in alike), default=0)
        fits = (n for n in alike if kept[n] == most and shown.keys() <= self._leaves[n].keys())
        best = min(fits, key=lambda n: (len(self._leaves[n]), n), default=None)
        return None if best is None else self._artifacts[best]

    def _is_alike(self, number: int, item: dict[str, Any]) -> bool:
        artifact = self._artifacts[number]
        return (
            item.get("type", artifact.type) == artifact.type
            and item.get("produced_by", artifact.produced_by) == artifact.produced_by
        )


def attribute(item: dict[str, Any], provider: str, known: Known) -> Item:
    """An item of a provider with its origin; one that was passed on as it is keeps what it has."""
    if not isinstance(item, Item):
        artifact, paths = _origin(item, item.get("artifact_id"), known)
        return Item(apart(item), provider, artifact, paths, _audience(item, artifact, known))
    if not item.changed:
        return item
    artifact, paths = _origin(item, item.get("artifact_id", item.artifact or None), known)
    seen = together((*item.visibility, *_audience(item, artifact, known)))
    return Item(apart(item), provider, artifact, (*item.redacted, *paths), seen)


def _origin(item: dict[str, Any], id: str | None, known: Known) -> tuple[str, tuple[str, ...]]:
    if id is None:
        return known.closest(item)
    artifact = known.get(id)
    # A text in place of the payload tells of the whole: nothing was taken out of it.
    if artifact is None or as_object(item.get("payload")) is None:
        return id, ()
    return id, tuple(lost(artifact.payload, item["payload"]))


def _audience(item: dict[str, Any], id: str, known: Known) -> Audience:
    """Who may see an item: whoever may see the artifact of which it shows nothing but what that
    says; where it says more, whoever may see all that its provider was given."""
    artifact = known.get(id)
    if artifact is None or not _is_of(item, artifact):
        return known.visibility
    return together((artifact.visibility,))


def _is_of(item: dict[str, Any], artifact: Artifact) -> bool:
    """Whether an item says nothing that its artifact does not."""
    whole = described(artifact)
    rest = {name: value for name, value in item.items() if name != "payload"}
    shown, own = leaves(item.get("payload", {})), leaves(artifact.payload)
    return shown.items() <= own.items() and all(
        name in whole and same(value, whole[name]) for name, value in rest.items()
    )


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


def leaves(value: Json, path: Path = ()) -> dict[Path, bytes]:
    """What a value holds at its ends, by the names that lead there."""
    inside = as_object(value)
    if inside is None and (elements := as_array(value)) is not None:
        inside = {str(number): each for number, each in enumerate(elements)}
    if not inside:
        return {path: msgspec.json.encode(value)}
    found: dict[Path, bytes] = {}
    for name, each in inside.items():
        found |= leaves(each, (*path, name))
    return found
