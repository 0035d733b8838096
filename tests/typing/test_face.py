"""The types of the public face say what they mean, and everything that they name is public."""

import inspect
import re
import typing
from typing import Any

from tests.typing.face import Place, exported, is_ours, parts, places
from turnloom import Event, RunEvent
from turnloom.events import RunEnd
from turnloom.log.events import ENDS
from turnloom.runtime.logic import FACTS

FACE = exported()
PUBLIC = {id(each) for each in FACE.values()}

# Names of types that hold `Any`, and why that is right.
MAY_HOLD_ANY = {
    "Json": "a JSON value",
    "Fields": "JSON values by their names",
    "Upcast": "gives JSON for JSON",
    "Transform": "gives JSON for JSON",
    "Change": "gives JSON for JSON",
    "Summarise": "gives a text for JSON",
    "AnyStep": "agent steps whose answers are of any type",
    "AnyPath": "agent steps whose answers are of any type",
    "Read": "reads a state or a board value, which is known where the source is used only",
}


def test_what_a_signature_names_is_public() -> None:
    hidden = [
        f"{place.where} names {found.__qualname__}"
        for name, thing in FACE.items()
        for place in places(name, thing)
        for found in (typing.get_origin(part) or part for part in parts(place.type))
        if isinstance(found, type) and is_ours(found) and id(found) not in PUBLIC
    ]
    assert hidden == []


def test_any_stands_where_json_is_meant() -> None:
    loose = [
        f"{place.where}: {place.text}"
        for name, thing in FACE.items()
        for place in places(name, thing)
        if any(part is Any for part in parts(place.type)) and not _may_hold_any(place)
    ]
    assert loose == []


def _may_hold_any(place: Place) -> bool:
    words = {*re.findall(r"\w+", place.text)}
    if place.where == "turnloom.Join.by":  # reads values whose types `consumes` names
        return True
    return "Any" not in words and bool(words & MAY_HOLD_ANY.keys())


def _raised(thing: Any) -> set[str]:
    """The errors that the docstrings of a public thing name."""
    functions = [thing]
    if isinstance(thing, type):
        functions += [each for name, each in vars(thing).items() if not name.startswith("_")]
    texts = [inspect.getdoc(each) or "" for each in functions]
    sections = [text.partition("Raises:\n")[2] for text in texts]
    return {name for text in sections for name in re.findall(r"^    (\w+): ", text, re.MULTILINE)}


def test_every_error_that_is_named_is_public() -> None:
    built_in = {"Exception", "ExceptionGroup", "OSError", "TimeoutError", "ValueError"}
    public = {name.rpartition(".")[2] for name in FACE if name.startswith("turnloom.")}
    named = {each for thing in FACE.values() if is_ours(thing) for each in _raised(thing)}
    assert "UnknownRun" in named
    assert named - built_in <= public


def test_the_union_of_events_is_the_registry_of_facts() -> None:
    found = {typing.get_args(each) for each in typing.get_args(RunEvent)}
    union = {(typing.get_args(kind)[0], fact) for kind, fact in found}
    assert union == {(fact.kind, fact) for fact in FACTS}
    assert len(typing.get_args(RunEvent)) == len(FACTS)
    assert all(typing.get_origin(each) is Event for each in typing.get_args(RunEvent))
    ends = {typing.get_args(typing.get_args(each)[0])[0] for each in typing.get_args(RunEnd)}
    assert ends == ENDS
