"""Which artifact an item shows, and what it leaves out."""

from copy import copy, deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.strategies import json_values
from turnloom.assembly.logic.slices import (
    KnownArtifacts,
    SliceItem,
    attribute,
    described,
    leaves,
    lost,
    written,
)
from turnloom.board.spec import Artifact
from turnloom.kernel.values import Json
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND, artifact

DEEP = {"a": 1, "b": {"c": [{"d": 2, "e": 3}, 4], "f": "x"}, "g": True}


@pytest.mark.parametrize(
    ("shown", "paths"),
    [
        (DEEP, []),
        ({}, ["a", "b", "g"]),
        ({**DEEP, "a": "1"}, ["a"]),
        ({**DEEP, "g": 1}, ["g"]),
        ({**DEEP, "more": 1}, []),
        ({**DEEP, "b": {"c": [{"d": 2}, 5]}}, ["b.c.0.e", "b.c.1", "b.f"]),
        ({**DEEP, "b": {"c": [4], "f": "x"}}, ["b.c"]),
        ({**DEEP, "b": None}, ["b"]),
    ],
)
def test_what_is_missing_or_other_has_its_path(shown: Json, paths: list[str]) -> None:
    assert list(lost(DEEP, shown)) == paths


def later(id: str, seconds: int, payload: Json, **more: Any) -> Artifact:
    return artifact(id, payload=payload, created_at=NOON + seconds * SECOND, **more)


KNOWN = KnownArtifacts(
    [
        later("young", 9, {"n": 1, "note": "y"}),
        later("old", 1, {"n": 1, "note": "o"}),
        later("bobs", 0, {"n": 1, "note": "b"}, produced_by="bob"),
        later("bare", 2, {}),
        later("deep", 3, DEEP, type="test.Deep"),
    ]
)
NOTE = {"type": "test.Note", "produced_by": "ann"}


@pytest.mark.parametrize(
    ("item", "artifact", "redacted"),
    [
        ({**NOTE, "payload": {"n": 1, "note": "y"}}, "young", ()),
        ({**NOTE, "payload": {"n": 1}}, "old", ("note",)),
        ({**NOTE, "payload": {"note": "y"}}, "young", ("n",)),
        ({**NOTE, "payload": {"n": 1, "note": "***"}}, "old", ("note",)),
        ({**NOTE, "payload": {"n": 1, "note": "y", "extra": 2}}, "", ()),
        ({**NOTE, "payload": {"n": 7}}, "", ()),
        ({**NOTE, "payload": {}}, "bare", ()),
        ({**NOTE, "payload": "text"}, "", ()),
        ({**NOTE}, "", ()),
        ({"payload": {"n": 1, "note": "b"}}, "bobs", ()),
        ({"payload": {"n": 1, "note": "b"}, "produced_by": "eve"}, "", ()),
        ({"payload": {"n": 1, "note": "b"}, "type": "Other"}, "", ()),
        ({"payload": {"b": {"c": [{"d": 2}, 4]}}}, "deep", ("a", "b.c.0.e", "b.f", "g")),
        ({**NOTE, "artifact_id": "young", "payload": {"n": 1}}, "young", ("note",)),
        ({**NOTE, "artifact_id": "young", "payload": "told"}, "young", ()),
        ({**NOTE, "artifact_id": "gone", "payload": {"n": 1}}, "gone", ()),
    ],
)
def test_plain_items_are_found_among_what_was_given(
    item: dict[str, Any], artifact: str, redacted: tuple[str, ...]
) -> None:
    found = attribute(item, "mine", KNOWN)
    assert (found.provider, found.artifact, found.redacted) == ("mine", artifact, redacted)
    assert found == item


def test_an_item_that_is_passed_on_keeps_where_it_is_from() -> None:
    item = SliceItem(described(later("young", 9, {"n": 1, "note": "y"})), "theirs", "young", ("x",))
    for same in (item, copy(item), deepcopy(item)):
        assert attribute(same, "mine", KNOWN).provider == "theirs"
        assert attribute(same, "mine", KNOWN).redacted == ("x",)


def test_an_item_that_somebody_changed_is_theirs() -> None:
    item = SliceItem(described(later("young", 9, {"n": 1, "note": "y"})), "theirs", "young", ("x",))
    item["payload"].pop("note")
    del item["artifact_id"]
    found = attribute(item, "mine", KNOWN)
    assert (found.provider, found.artifact) == ("mine", "young")
    assert found.redacted == ("x", "note")
    assert found.text == written(item)


objects = st.dictionaries(st.sampled_from(["a", "b", "c"]), json_values, max_size=3)


@given(st.lists(objects, max_size=6), st.data())
def test_what_was_given_is_found_whatever_was_taken_out(
    payloads: list[dict[str, Json]], data: st.DataObject
) -> None:
    board = [later(str(n), n, each) for n, each in enumerate(payloads)]
    known = KnownArtifacts(reversed(board))
    for each in board:
        gone = data.draw(st.sets(st.sampled_from(sorted(each.payload) or ["none"])))
        shown = {name: value for name, value in each.payload.items() if name not in gone}
        found = attribute({**NOTE, "payload": shown}, "mine", known)
        again = attribute({**NOTE, "payload": shown}, "mine", KnownArtifacts(board))
        assert (found.artifact, found.redacted) == (again.artifact, again.redacted)
        if shown:
            whole = board[int(found.artifact)].payload
            assert leaves(shown).items() <= leaves(whole).items()
            assert list(found.redacted) == list(lost(whole, shown))
