"""Slices of context: the items that providers return, their origins, and the facts about them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, cast, overload

import msgspec

from turnloom.assembly.events import ContextGathered, GatheredItem, ProviderCall, ProviderFailed
from turnloom.assembly.logic.labels import together
from turnloom.assembly.spec import ContextSlice
from turnloom.board.spec import Artifact, Audience
from turnloom.errors import ContextUnavailable
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_array, as_object, canonical, is_text
from turnloom.variables.logic.types import apart, is_json, same


class SliceItem(dict[str, Any]):
    """An item with its provider, its artifact, the redacted paths, and the visibility of its
    inputs.

    `text` is its rendering at creation, to detect later changes.
    """

    __slots__ = ("artifact", "provider", "redacted", "text", "visibility")

    def __init__(
        self,
        content: Mapping[str, Json],
        provider: str,
        artifact: str = "",
        redacted: Sequence[str] = (),
        visibility: Audience = (),
    ) -> None:
        super().__init__(content)
        self.provider = provider
        self.artifact = artifact
        self.redacted = tuple(dict.fromkeys(redacted))
        self.visibility = visibility
        self.text = written(content)

    @property
    def changed(self) -> bool:
        """Whether it was changed since its creation."""
        return self.text != written(self)

    def with_payload(self, payload: Json, redacted: Sequence[str] = ()) -> "SliceItem":
        """A copy with another payload and more redactions."""
        return self.with_content({**self, "payload": payload}, redacted)

    def with_content(
        self, content: Mapping[str, Json], redacted: Sequence[str] = ()
    ) -> "SliceItem":
        """A copy with another content and more redactions."""
        gone = (*self.redacted, *redacted)
        return SliceItem(content, self.provider, self.artifact, gone, visibility=self.visibility)


def written(content: Mapping[str, Json]) -> str:
    """An item as it appears in a prompt, with the separator before it."""
    return f"\n{canonical(content)}"


def described(artifact: Artifact) -> dict[str, Any]:
    """The item that shows a whole artifact, with its own copy of the payload."""
    return _item(artifact, apart(artifact.payload))


def written_artifact(artifact: Artifact) -> str:
    """A whole artifact as it appears in a prompt."""
    return written(_item(artifact, artifact.payload))


def _item(artifact: Artifact, payload: Json) -> dict[str, Any]:
    return {
        "type": artifact.type,
        "payload": payload,
        "produced_by": artifact.produced_by,
        "artifact_id": artifact.id,
        "created_at": artifact.created_at.isoformat(),
        "tags": sorted(artifact.tags),
        "correlation_id": artifact.correlation_id,
        "run": artifact.run,
    }


def with_payload(artifact: Artifact, payload: Json) -> Artifact:
    """A copy of an artifact with its own copy of this payload."""
    return msgspec.structs.replace(artifact, payload=apart(payload))


# The path of a leaf in a payload, and the leaf with its value.
Path = tuple[str, ...]
Leaf = tuple[Path, bytes]


class WitnessedArtifacts(Sequence[Artifact]):
    """Artifacts as they were when the board returned them, regardless of later changes."""

    def __init__(self) -> None:
        self._noted: list[tuple[Artifact, bytes]] = []

    def note(self, artifacts: Iterable[Artifact]) -> None:
        """Record artifacts that the board returned."""
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


class KnownArtifacts:
    """The artifacts that the providers of a turn may show."""

    def __init__(self, artifacts: Iterable[Artifact]) -> None:
        self._by_id: dict[str, Artifact] = {}
        for each in artifacts:
            self._by_id.setdefault(each.id, each)

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    @cached_property
    def visibility(self) -> Audience:
        """The visibility of content made of all of them."""
        return together(each.visibility for each in self._by_id.values())

    def get(self, id: str) -> Artifact | None:
        """The artifact with this id."""
        return self._by_id.get(id)

    @cached_property
    def _listing(self) -> "_Listing":
        artifacts = self._by_id.values()
        return _Listing(sorted(artifacts, key=lambda each: (each.created_at, each.id)))

    def closest(self, item: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The artifact that an item shows, and the paths it omits; none if the item adds something.
        Among several, the one of which it keeps most, then omits least, then the oldest."""
        payload = as_object(item.get("payload"))
        artifact = None if payload is None else self._listing.closest(item, leaves(payload))
        return ("", ()) if artifact is None else (artifact.id, (*lost(artifact.payload, payload),))


class _Listing:
    """Artifacts by age, indexed by the leaves of their payloads."""

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


def attribute(item: dict[str, Any], provider: str, known: KnownArtifacts) -> SliceItem:
    """An item of a provider with its origin; an unchanged item of another provider keeps its
    own."""
    if not isinstance(item, SliceItem):
        artifact, paths = _origin(item, item.get("artifact_id"), known)
        return SliceItem(
            apart(item), provider, artifact, paths, visibility=_audience(item, artifact, known)
        )
    if not item.changed:
        return item
    artifact, paths = _origin(item, item.get("artifact_id", item.artifact or None), known)
    seen = together((*item.visibility, *_audience(item, artifact, known)))
    return SliceItem(apart(item), provider, artifact, (*item.redacted, *paths), visibility=seen)


def _origin(
    item: dict[str, Any], id: str | None, known: KnownArtifacts
) -> tuple[str, tuple[str, ...]]:
    if id is None:
        return known.closest(item)
    artifact = known.get(id)
    # A text in place of the payload describes the whole: nothing was redacted.
    if artifact is None or as_object(item.get("payload")) is None:
        return id, ()
    return id, tuple(lost(artifact.payload, item["payload"]))


def _audience(item: dict[str, Any], id: str, known: KnownArtifacts) -> Audience:
    """The visibility of an item: that of its artifact if it adds nothing, otherwise that of
    everything its provider received."""
    artifact = known.get(id)
    if artifact is None or not _is_of(item, artifact):
        return known.visibility
    return together((artifact.visibility,))


def _is_of(item: dict[str, Any], artifact: Artifact) -> bool:
    """Whether an item adds nothing to its artifact."""
    whole = described(artifact)
    rest = {name: value for name, value in item.items() if name != "payload"}
    shown, own = leaves(item.get("payload", {})), leaves(artifact.payload)
    return shown.items() <= own.items() and all(
        name in whole and same(value, whole[name]) for name, value in rest.items()
    )


def lost(whole: Json, shown: Json, path: str = "") -> Iterator[str]:
    """The paths at which something is missing or changed."""
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
    """The leaves of a value, by path."""
    inside = as_object(value)
    if inside is None and (elements := as_array(value)) is not None:
        inside = {str(number): each for number, each in enumerate(elements)}
    if not inside:
        return {path: msgspec.json.encode(value)}
    found: dict[Path, bytes] = {}
    for name, each in inside.items():
        found |= leaves(each, (*path, name))
    return found


_ONLY_JSON = (
    "Return only JSON: texts, numbers, true, false, null, lists, and dicts with texts as keys; "
    'for a model, `model_dump(mode="json")`.'
)


class CheckedSlice(NamedTuple):
    """A validated slice, its items with their origins."""

    items: list[SliceItem]
    metadata: dict[str, Any]
    inputs: list[dict[str, Any]] | None


def settle(
    given: object, inputs: Sequence[Artifact], provider: str, known: KnownArtifacts
) -> CheckedSlice:
    """Validate the slice of a provider, and find the origin of each item.

    Raises:
        ContextUnavailable: it is not a slice, or contains something other than JSON.
    """
    if not isinstance(given, ContextSlice):
        raise ContextUnavailable(
            f"{provider!r} returned {_a(given)}. Return a ContextSlice(items=[…])."
        )
    items = _contents(given.items, "items", provider)
    metadata = _contents([given.metadata], "metadata", provider)[0]
    shown = None if given.inputs is None else _contents(given.inputs, "inputs", provider)
    if shown is not None:
        _check_inputs(shown, inputs, provider)
    return CheckedSlice(
        [attribute(each, provider, known) for each in items], apart(metadata), shown
    )


def _contents(values: object, what: str, provider: str) -> list[dict[str, Any]]:
    """Check a list of JSON objects."""
    listed = as_array(values)
    if listed is None:
        raise ContextUnavailable(
            f"{provider!r} returned {_a(values)} as {what}. Return a list of dicts."
        )
    for number, each in enumerate(listed):
        place = what if what == "metadata" else f"{what}[{number}]"
        content = as_object(each)
        if content is None:
            raise ContextUnavailable(f"{provider!r} returned {_a(each)} as {place}. {_ONLY_JSON}")
        if not is_json(content):
            raise ContextUnavailable(
                f"{provider!r} returned {_not_json(content, place)}. {_ONLY_JSON}"
            )
        id: object = content.get("artifact_id")
        if id is not None and not isinstance(id, str):
            raise ContextUnavailable(
                f"{provider!r} returned {_a(id)} as the `artifact_id` of {place}. "
                "Return the id of the artifact, or omit it."
            )
    return cast(list[dict[str, Any]], listed)


def _check_inputs(
    shown: Sequence[dict[str, Any]], inputs: Sequence[Artifact], provider: str
) -> None:
    """Check that each input of the turn is present, in order, with a payload."""
    fits = len(shown) == len(inputs) and all(
        each.get("artifact_id", artifact.id) == artifact.id
        and as_object(each.get("payload")) is not None
        for each, artifact in zip(shown, inputs, strict=True)
    )
    if not fits:
        raise ContextUnavailable(
            f"{provider!r} returned `inputs` that do not match the turn. Return a dict with a "
            f"`payload` for each of the {len(inputs)}, in order, or omit `inputs`."
        )


def _not_json(value: Json, place: str) -> str:
    """Where a value is not JSON, without quoting it, since it may be secret."""
    try:
        return _found(value, place) or f"{place}, which is not JSON"
    except RecursionError:
        return f"{place}, which is nested too deeply or contains itself"


def _found(value: Json, place: str) -> str | None:
    inside, elements = as_object(value), as_array(value)
    if inside is not None:
        if not all(map(is_text, inside)):
            return f"{place} with a key that is not a text"
        parts = [(f"{place}.{name}", each) for name, each in inside.items()]
    elif elements is not None:
        parts = [(f"{place}[{number}]", each) for number, each in enumerate(elements)]
    else:
        return None if is_json(value) else f"{_a(value)} as {place}"
    return next((found for where, each in parts if (found := _found(each, where))), None)


def _a(value: object) -> str:
    """The type of a value, for messages."""
    return f"a {type(value).__name__!r}"


class GatheredSlice(NamedTuple):
    """The slice of a provider, or of its fallback, for a turn; `failures` are those of all
    providers called. `is_own` says that the items are whole artifacts of the board, in which marks
    are genuine."""

    turn: int
    agent: str
    provider: str
    items: tuple[SliceItem, ...]
    calls: tuple[ProviderCall, ...]
    metadata: Mapping[str, Json]
    inputs: tuple[SliceItem, ...] | None
    fallback: bool
    failures: tuple[ProviderFailed, ...]
    cut: bool = False
    is_own: bool = False


def check_given(items: Iterable[SliceItem], provider: str, known: KnownArtifacts) -> None:
    """Check that items show only artifacts that the board returned.

    Raises:
        ContextUnavailable: an item names another artifact.
    """
    for number, each in enumerate(items):
        if each.artifact and each.artifact not in known:
            raise ContextUnavailable(
                f"{provider!r} returned items[{number}] as artifact {each.artifact!r}, which the "
                "board did not return in this turn. Query the board for it, or omit "
                "`artifact_id`."
            )


def shown_inputs(
    inputs: Sequence[Artifact], shown: Sequence[Mapping[str, Any]] | None, provider: str
) -> tuple[SliceItem, ...] | None:
    """The changed inputs of a turn; None if they are unchanged."""
    if shown is None:
        return None
    seen = together(artifact.visibility for artifact in inputs)
    items = tuple(
        SliceItem(
            each,
            provider,
            artifact.id,
            tuple(lost(artifact.payload, each["payload"])),
            visibility=seen,
        )
        for artifact, each in zip(inputs, shown, strict=True)
    )
    as_they_are = [written(described(artifact)) for artifact in inputs]
    return None if [each.text for each in items] == as_they_are else items


def gathered_fact(
    gathered: GatheredSlice, known: Collection[str], masked: Callable[[str], str] = str
) -> ContextGathered:
    """The fact of a gathered slice; texts that the run already has are referenced.

    Digests are of the recorded texts, so `masked` is applied first.
    """
    seen = set(known)

    def record(item: SliceItem) -> GatheredItem:
        text = masked(item.text)
        key = digest(text)
        held = key in seen
        seen.add(key)
        new_text = None if held else text
        return GatheredItem(
            key,
            item.provider,
            item.artifact,
            item.redacted,
            text=new_text,
            visibility=item.visibility,
        )

    return ContextGathered(
        gathered.turn,
        gathered.agent,
        gathered.provider,
        tuple(map(record, gathered.items)),
        calls=gathered.calls,
        metadata=gathered.metadata,
        inputs=None if gathered.inputs is None else tuple(map(record, gathered.inputs)),
        fallback=gathered.fallback,
        cut=gathered.cut,
    )
