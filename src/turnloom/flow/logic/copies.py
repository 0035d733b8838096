"""States as steps get them: each its own copy, without reading what did not change once more."""

from collections.abc import Callable, Mapping
from copy import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property
from operator import is_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel

from turnloom.flow.logic.states import APPENDED, StateModel
from turnloom.kernel.values import Json

# Values that nothing can change, so that copies of a state may share them.
_FIXED = (str, int, float, bool, bytes, NoneType, date, datetime, time, timedelta, Decimal, UUID)


class StateCopies:
    """The states of one run. What was read last is kept, and a field is read from JSON again only
    if it changed since, or has values that a step could change and that are not simply copied."""

    def __init__(self, states: StateModel) -> None:
        self._states = states
        self._read: dict[str, Json] = {}
        self._last: Any = None

    def load(self, written: Mapping[str, Json]) -> Any:
        """The state that JSON says, of which nobody else has a hold on anything."""
        if not self._states.is_piecewise:
            return self._states.load(written)
        if self._last is None or written.keys() != self._states.reducers.keys():
            return self._load_whole(written)
        changed = [name for name, value in written.items() if value is not self._read[name]]
        if changed:
            self._last = copy(self._last)
            for name in changed:
                vars(self._last)[name] = self._changed(name, written[name])
                self._read[name] = written[name]
        return self._copied(written)

    def _changed(self, name: str, now: Any) -> Any:
        """A field that changed; of a list that was only appended to, what is new is read."""
        before: Any = self._read[name]
        if name in self._states.growing and before and len(before) <= len(now or ()):
            if self._states.reducers[name] == APPENDED and all(map(is_, before, now)):
                new = self._states.load_field(name, now[len(before) :])
                return [*vars(self._last)[name], *new]
        return self._states.load_field(name, now)

    def _load_whole(self, written: Mapping[str, Json]) -> Any:
        self._last = self._states.load(written)
        self._read = {name: written.get(name) for name in self._states.reducers}
        return self._copied(written)

    def _copied(self, written: Mapping[str, Json]) -> Any:
        made = copy(self._last)
        for name, copier in self._copiers.items():
            if copier is not None:
                vars(made)[name] = copier(vars(made)[name])
            elif name in written:
                vars(made)[name] = self._states.load_field(name, written[name])
        return made

    @cached_property
    def _copiers(self) -> Mapping[str, Callable[[Any], Any] | None]:
        """How each field is copied that a step could change; by reading it again, if by nothing."""
        fields = self._states.model.model_fields
        return {
            name: _copier(field.annotation)
            for name, field in fields.items()
            if not _is_fixed(field.annotation)
        }


def _copier(annotation: Any) -> Callable[[Any], Any] | None:
    """What copies a list or a mapping, and what is in it that a step could change."""
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind not in (list, dict, set) or not parts:
        return None
    if all(map(_is_fixed, parts)):
        return kind
    inner = _copier(parts[-1])
    if inner is None:
        return None
    if kind is list:
        return lambda found: [inner(each) for each in found]
    return lambda found: {key: inner(each) for key, each in found.items()}


def _is_fixed(annotation: Any) -> bool:
    """Whether nothing can change the values of a type."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        plain = cast(type[object], annotation)
        return plain in _FIXED or issubclass(plain, Enum) or _is_fixed_model(plain)
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Literal:
        return True
    if kind is Annotated:
        return _is_fixed(parts[0])
    if kind in (Union, UnionType, tuple, frozenset):
        return all(each is Ellipsis or _is_fixed(each) for each in parts)
    return False


def _is_fixed_model(kind: type[object]) -> bool:
    """Whether a type is a model that is frozen, with everything in it."""
    if not issubclass(kind, BaseModel) or not kind.model_config.get("frozen"):
        return False
    has_more = kind.model_config.get("extra") == "allow" or kind.__private_attributes__
    return not has_more and all(_is_fixed(each.annotation) for each in kind.model_fields.values())
