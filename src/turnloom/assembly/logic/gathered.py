"""What was gathered for a turn, and the fact of it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from turnloom.assembly.events import ContextGathered, GatheredItem, ProviderCall, ProviderFailed
from turnloom.assembly.logic.items import Item, described, written
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.origins import Known, lost
from turnloom.board.spec import Artifact
from turnloom.errors import ContextUnavailable
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json


class Gathered(NamedTuple):
    """What a provider gave for a turn, or the fallback; `failures` are of all that were asked.
    `is_own` says that the items are artifacts as the board has them, in which marks are genuine."""

    turn: int
    agent: str
    provider: str
    items: tuple[Item, ...]
    calls: tuple[ProviderCall, ...]
    metadata: Mapping[str, Json]
    inputs: tuple[Item, ...] | None
    fallback: bool
    failures: tuple[ProviderFailed, ...]
    cut: bool = False
    is_own: bool = False


def check_given(items: Iterable[Item], provider: str, known: Known) -> None:
    """See that items show only artifacts that their provider was given.

    Raises:
        ContextUnavailable: one names another.
    """
    for number, each in enumerate(items):
        if each.artifact and each.artifact not in known:
            raise ContextUnavailable(
                f"{provider!r} gave items[{number}] as artifact {each.artifact!r}, which the board "
                "did not give out for this turn. Ask the board for it, or leave `artifact_id` out."
            )


def shown_inputs(
    inputs: Sequence[Artifact], shown: Sequence[Mapping[str, Any]] | None, provider: str
) -> tuple[Item, ...] | None:
    """The inputs of a turn as they are to be shown; nothing where that is as they are."""
    if shown is None:
        return None
    seen = together(artifact.visibility for artifact in inputs)
    items = tuple(
        Item(each, provider, artifact.id, tuple(lost(artifact.payload, each["payload"])), seen)
        for artifact, each in zip(inputs, shown, strict=True)
    )
    as_they_are = [written(described(artifact)) for artifact in inputs]
    return None if [each.text for each in items] == as_they_are else items


def gathered_fact(
    gathered: Gathered, known: Collection[str], masked: Callable[[str], str] = str
) -> ContextGathered:
    """The fact of what was gathered; a text whose digest the run knows is referred to.

    Digests are of the texts as they are recorded, so whatever masks these is given here.
    """
    seen = set(known)

    def record(item: Item) -> GatheredItem:
        text = masked(item.text)
        key = digest(text)
        held = key in seen
        seen.add(key)
        told = None if held else text
        return GatheredItem(key, item.provider, item.artifact, item.redacted, told, item.visibility)

    return ContextGathered(
        gathered.turn,
        gathered.agent,
        gathered.provider,
        tuple(map(record, gathered.items)),
        gathered.calls,
        gathered.metadata,
        None if gathered.inputs is None else tuple(map(record, gathered.inputs)),
        gathered.fallback,
        gathered.cut,
    )
