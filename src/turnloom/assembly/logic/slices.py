"""Whether what a provider gives is a slice, and what that comes to."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from turnloom.assembly.logic.items import Item
from turnloom.assembly.logic.origins import Known, attribute
from turnloom.assembly.spec import ContextSlice
from turnloom.board.spec import Artifact
from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import Json, as_array, as_object, is_text
from turnloom.variables.logic.types import apart, is_json

_ONLY_JSON = (
    "Give JSON only: texts, numbers, true, false, null, lists, and dicts with texts as keys; "
    'of a model `model_dump(mode="json")`.'
)


class Settled(NamedTuple):
    """A slice that was checked, its items with their origins."""

    items: list[Item]
    metadata: dict[str, Any]
    inputs: list[dict[str, Any]] | None


def settle(given: object, inputs: Sequence[Artifact], provider: str, known: Known) -> Settled:
    """What a provider gave, each item with its origin.

    Raises:
        ContextUnavailable: it is no slice, or something in it is no JSON.
    """
    if not isinstance(given, ContextSlice):
        raise ContextUnavailable(
            f"{provider!r} gave {_a(given)}. Return a ContextSlice(items=[…])."
        )
    items = _contents(given.items, "items", provider)
    metadata = _contents([given.metadata], "metadata", provider)[0]
    shown = None if given.inputs is None else _contents(given.inputs, "inputs", provider)
    if shown is not None:
        _check_inputs(shown, inputs, provider)
    return Settled([attribute(each, provider, known) for each in items], apart(metadata), shown)


def _contents(values: object, what: str, provider: str) -> list[dict[str, Any]]:
    """Values that are dicts of JSON."""
    listed = as_array(values)
    if listed is None:
        raise ContextUnavailable(f"{provider!r} gave {what} as {_a(values)}. Give a list of dicts.")
    for number, each in enumerate(listed):
        place = what if what == "metadata" else f"{what}[{number}]"
        content = as_object(each)
        if content is None:
            raise ContextUnavailable(f"{provider!r} gave {_a(each)} as {place}. {_ONLY_JSON}")
        if not is_json(content):
            raise ContextUnavailable(f"{provider!r} gave {_trouble(content, place)}. {_ONLY_JSON}")
        id: object = content.get("artifact_id")
        if id is not None and not isinstance(id, str):
            raise ContextUnavailable(
                f"{provider!r} gave {_a(id)} as the `artifact_id` of {place}. "
                "Give the id of the artifact, or leave it out."
            )
    return cast(list[dict[str, Any]], listed)


def _check_inputs(
    shown: Sequence[dict[str, Any]], inputs: Sequence[Artifact], provider: str
) -> None:
    """See that each input of the turn is shown, in its place, with a payload."""
    fits = len(shown) == len(inputs) and all(
        each.get("artifact_id", artifact.id) == artifact.id
        and as_object(each.get("payload")) is not None
        for each, artifact in zip(shown, inputs, strict=True)
    )
    if not fits:
        raise ContextUnavailable(
            f"{provider!r} gave `inputs` that are not those of the turn. Give a dict with a "
            f"`payload` for each of the {len(inputs)}, in their order, or leave `inputs` out."
        )


def _trouble(value: Json, place: str) -> str:
    """Where a value is no JSON, and what stands there. The value itself is nobody's business."""
    try:
        return _found(value, place) or f"{place}, which is no JSON"
    except RecursionError:
        return f"{place}, which has itself inside or is too deep"


def _found(value: Json, place: str) -> str | None:
    inside, elements = as_object(value), as_array(value)
    if inside is not None:
        if not all(map(is_text, inside)):
            return f"{place} with a key that is no text"
        parts = [(f"{place}.{name}", each) for name, each in inside.items()]
    elif elements is not None:
        parts = [(f"{place}[{number}]", each) for number, each in enumerate(elements)]
    else:
        return None if is_json(value) else f"{_a(value)} as {place}"
    return next((found for where, each in parts if (found := _found(each, where))), None)


def _a(value: object) -> str:
    """What kind of thing a value is."""
    return f"a {type(value).__name__!r}"
