"""Detection of JSON Schemas that no value matches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, floor, inf
from typing import Any
from urllib.parse import unquote

from turnloom.kernel.values import Json, as_array, as_object

_TYPES = frozenset("array boolean integer null number object string".split())
_LIMITS = (("minLength", "maxLength", "string"), ("minItems", "maxItems", "array"))


class Emptiness:
    """Finds schemas that no value matches; in doubt, a schema counts as satisfiable.

    `fits` says whether a value matches a schema; `parts` are all subschemas by their pointers.
    """

    def __init__(
        self,
        fits: Callable[[Json, Mapping[str, Any]], bool],
        parts: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._fits = fits
        self._parts = parts
        self._known: dict[str, str | None] = {}

    def reason(self, schema: Json) -> str | None:
        """Why no value matches the schema; None if one may."""
        if schema is False:
            return "`false` matches nothing"
        mapping = as_object(schema)
        return next(self._reasons(mapping), None) if mapping else None

    def _reasons(self, schema: Mapping[str, Any]) -> Iterator[str]:
        yield from self._of_words(schema)
        yield from self._of_parts(schema)
        reasons = [self._of_type(each, schema) for each in _types(schema)]
        found = [each for each in reasons if each]
        if len(found) == len(reasons):
            yield found[0] if found else "no type is in both `type` and `allOf`"

    def _of_words(self, schema: Mapping[str, Any]) -> Iterator[str]:
        if schema.get("not") in ({}, True) and "not" in schema:
            yield "`not` excludes every value"
        for key in ("const", "enum"):
            if key in schema:
                rest = {
                    word: said for word, said in schema.items() if word not in ("const", "enum")
                }
                values = [schema[key]] if key == "const" else as_array(schema[key]) or []
                if not any(self._fits(each, rest) for each in values):
                    yield f"`{key}` contradicts the rest of the schema"

    def _of_parts(self, schema: Mapping[str, Any]) -> Iterator[str]:
        for part in as_array(schema.get("allOf")) or ():
            if reason := self.reason(part):
                yield reason
        for key in ("anyOf", "oneOf"):
            reasons = [self.reason(part) for part in as_array(schema.get(key)) or ()]
            if reasons and all(reasons):
                yield f"no schema in `{key}` can match: {reasons[0]}"
        if reason := self._of_reference(schema.get("$ref")):
            yield reason

    def _of_reference(self, reference: str | None) -> str | None:
        pointer = unquote(reference or "")
        if pointer in self._parts and pointer not in self._known:
            self._known[pointer] = None  # it may refer to itself
            self._known[pointer] = self.reason(dict(self._parts[pointer]))
        return self._known.get(pointer)

    def _of_type(self, kind: str, schema: Mapping[str, Any]) -> str | None:
        """Why no value of a type matches the schema."""
        for least, most, of in _LIMITS:
            if kind == of and schema.get(least, 0) > schema.get(most, inf):
                return f"`{least}` is greater than `{most}`"
        match kind:
            case "integer" | "number":
                return _of_numbers(schema, whole=kind == "integer")
            case "array":
                return next(self._of_arrays(schema), None)
            case "object":
                return next(self._of_objects(schema), None)
            case _:
                return None

    def _of_arrays(self, schema: Mapping[str, Any]) -> Iterator[str]:
        first = as_array(schema.get("prefixItems")) or []
        items = [*first, schema.get("items", True)]
        for number, part in enumerate(items):
            if schema.get("minItems", 0) > number and (reason := self.reason(part)):
                yield f"a required item cannot match: {reason}"
        wanted = schema.get("minContains", 1) if "contains" in schema else 0
        if wanted > schema.get("maxItems", inf):
            yield "`minContains` is greater than `maxItems`"
        if wanted and (reason := self.reason(schema["contains"])):
            yield f"`contains` cannot match: {reason}"

    def _of_objects(self, schema: Mapping[str, Any]) -> Iterator[str]:
        required: Sequence[str] = sorted(set(as_array(schema.get("required")) or ()))
        least = max(schema.get("minProperties", 0), len(required))
        if least > schema.get("maxProperties", inf):
            yield "it requires more properties than `maxProperties` allows"
        properties = as_object(schema.get("properties")) or {}
        others = schema.get("additionalProperties", True)
        for name in required:
            part = properties.get(name, others)
            if reason := self.reason(part):
                allowed = name in properties or part is not False
                why = reason if allowed else "`additionalProperties` forbids it"
                yield f"the required property {name!r} cannot be present: {why}"


def _types(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema and all parts of its `allOf` allow."""
    admitted = _admitted(schema)
    for part in as_array(schema.get("allOf")) or ():
        admitted &= _admitted(as_object(part) or {})
    return sorted(admitted)


def _admitted(schema: Mapping[str, Any]) -> frozenset[str]:
    said = schema.get("type")
    if said is None:
        return _TYPES
    types = frozenset([said] if isinstance(said, str) else said)
    return types | {"integer"} if "number" in types else types


def _of_numbers(schema: Mapping[str, Any], *, whole: bool) -> str | None:
    """Why no number is within the bounds."""
    low, high = schema.get("minimum", -inf), schema.get("maximum", inf)
    above, below = schema.get("exclusiveMinimum", -inf), schema.get("exclusiveMaximum", inf)
    if low > high or above >= below or above >= high or low >= below:
        return "no number is within its bounds"
    bounds = (max(low, above), min(high, below))
    if not whole or inf in (abs(bounds[0]), abs(bounds[1])):
        return None
    first = floor(above) + 1 if above >= low else ceil(low)
    last = ceil(below) - 1 if below <= high else floor(high)
    return "no integer is within its bounds" if first > last else None
