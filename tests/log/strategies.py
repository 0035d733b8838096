"""Any event that this release can write, made from the types of its facts alone."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from tests.board.strategies import artifacts, visibilities
from turnloom.assembly.spec import Message
from turnloom.board.spec import Artifact, Audience, Visibility
from turnloom.log.spec import Event, Fact

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

texts = st.text(max_size=8)  # every character that UTF-8 has
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: json_values,
    str: texts,
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    NoneType: st.none(),
    Artifact: artifacts("a"),
    Message: st.tuples(st.integers(0, 9), texts, texts, visibilities).map(lambda it: Message(*it)),
    **dict.fromkeys((*get_args(Visibility), Visibility), visibilities),
    Audience: st.lists(visibilities, max_size=2).map(tuple),
    datetime: st.integers(0, 2**52).map(lambda each: EPOCH + timedelta(microseconds=each)),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a fact may have."""
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs_of(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values_of, arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin in (dict, Mapping):
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    assert origin is UnionType, f"no strategy for {kind}"
    return st.one_of(*map(values_of, arguments))


def structs_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any instance of a struct, also with its defaults."""
    fields = msgspec.structs.fields(kind)
    needed = {each.name: values_of(each.type) for each in fields if each.required}
    optional = {each.name: values_of(each.type) for each in fields if not each.required}
    given = st.fixed_dictionaries(needed, optional=optional)
    return given.map(lambda values: kind(**values))


def events_of(kind: type[Fact]) -> st.SearchStrategy[Event]:
    """Any event that holds a fact of this kind."""
    return st.builds(
        Event,
        id=texts,
        run=texts,
        seq=st.integers(1, 2**53),
        at=PLAIN[datetime],
        kind=st.just(kind.kind),
        actor=texts,
        data=structs_of(kind),
        cause=st.none() | st.integers(1, 2**53),
        v=st.just(kind.version),
    )
