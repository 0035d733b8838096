"""Everything that can be reached from an object by attributes, without looking into frames or the
globals of modules."""

from collections.abc import Iterator
from types import BuiltinMethodType, CellType, MethodType, MethodWrapperType, ModuleType
from typing import Any
from weakref import ReferenceType

# What leads to the globals of a module, from where everything can be reached, or to types.
ELSEWHERE = frozenset({"__globals__", "__builtins__", "__annotations__"})
# What a method is bound to; it has methods of its own without end.
BOUND = frozenset({"__self__", "__func__"})
METHODS = (MethodType, MethodWrapperType, BuiltinMethodType)
PLAIN = (str, bytes, int, float, bool, type(None), ModuleType)


def reachable(start: object) -> Iterator[object]:
    """The object itself, and each object that attributes, cells, items and references lead to."""
    seen: dict[int, object] = {}
    ahead = [start]
    while ahead:
        value = ahead.pop()
        if id(value) in seen or isinstance(value, PLAIN):
            continue
        seen[id(value)] = value
        yield value
        ahead += _next(value)


def _next(value: object) -> Iterator[object]:
    named = BOUND if isinstance(value, METHODS) else {*dir(value), *BOUND} - ELSEWHERE
    for name in named:
        try:
            yield getattr(value, name)
        except Exception:  # noqa: BLE001 - what cannot be had leads nowhere
            continue
    yield from _inside(value)


def _inside(value: Any) -> Iterator[object]:
    match value:
        case CellType():
            yield value.cell_contents
        case ReferenceType():
            yield value()
        case dict():
            yield from value.keys()
            yield from value.values()
        case list() | tuple() | set() | frozenset():
            yield from value
        case _:
            return
