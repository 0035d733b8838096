"""What the views of agents become."""

import pytest

from tests.variables.migration.test_entries import tells
from turnloom.kernel.values import Json
from turnloom.variables.logic.migration import Note, migrate


def shown(view: Json, **sections: Json) -> tuple[Json, Note]:
    found = migrate({"agents": {"A": view}, **sections})
    return found.value.get("context_variables", found.value)["agents"].get("A"), found.notes[0]


@pytest.mark.parametrize(
    ("view", "became"),
    [
        (["app_id"], {"variables": ["app_id"]}),
        ("app_id", {"variables": ["app_id"]}),
        ({"exposures": []}, {}),
        ({"exposures": {"variables": ["app_id"]}}, {"variables": ["app_id"]}),
    ],
)
def test_views(view, became):
    entry, note = shown(view)
    assert entry == became
    assert (note.became, note.lost) == ("exposure", ())


def test_several_exposures_become_one():
    one = {"header": "Now", "variables": ["app_id"], "placement": "append"}
    two = {"header": "Then", "variables": ["user_id", "app_id"], "placement": "append"}
    entry, note = shown({"variables": ["app_id", "chat_id"], "exposures": [one, two, 3]})
    assert entry == {
        "variables": ["app_id", "user_id"],
        "header": "Now",
        "placement": "append",
    }
    assert tells(note.assumed, ("2",))
    assert tells(note.lost, ("3",), ("'chat_id'",), ("'header'", "'Then'"))


def test_what_a_view_cannot_say_is_named():
    exposures = [{"variables": [3, "y"], "placement": "middle"}]
    entry, note = shown({"exposures": exposures, "name": "B", "ui": 1})
    assert entry == {"variables": ["y"], "placement": "middle"}
    assert tells(note.lost, ("'A'",), ("3",), ("'ui'", "1"))
    assert tells(note.left, ("'placement'", "'middle'"))


def test_a_view_keeps_undeclared_variables():
    lost = {"y": {"type": "string", "source": {"type": "external"}}}
    value = {"definitions": lost, "agents": {"A": {"variables": ["y", "z"]}}}
    assert migrate(value).value is value


def test_exposures_beside_agents_are_joined_in_either_order():
    exposures = {"A": [{"header": "Now", "variables": ["app_id"]}]}
    agents = {"A": {"variables": ["user_id"], "header": "Then"}}
    for value in (
        {"exposures": exposures, "agents": agents},
        {"agents": agents, "exposures": exposures},
    ):
        found = migrate(value)
        assert found.value["context_variables"]["agents"] == {
            "A": {"variables": ["app_id"], "header": "Now"}
        }
        assert "It is merged with" in found.notes[1].assumed[-1]
        assert tells(found.notes[1].lost, ("'user_id'",), ("'header'", "'Then'"))


@pytest.mark.parametrize("broken", [3, {"variables": 5}, {"variables": [3]}])
def test_a_broken_view_beside_an_exposure_stays(broken):
    found = migrate({"agents": {"A": broken}, "exposures": {"A": {"variables": ["app_id"]}}})
    assert found.changed and migrate(found.value).value == found.value
