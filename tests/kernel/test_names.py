"""Things in code have names that do not depend on the process."""

import json
from functools import partial, wraps
from typing import Any

import pytest

from turnloom import TranscriptProvider
from turnloom.kernel.code import qualified


class Outer:
    class Inner:
        def method(self) -> None:
            pass

        def __call__(self) -> None:
            pass


def plain() -> None:
    pass


@wraps(plain)
def wrapped() -> None:
    pass


class Obliging:
    """Has whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return self


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (plain, "plain"),
        (wrapped, "plain"),
        (partial(partial(plain)), "plain"),
        (Outer.Inner, "Outer.Inner"),
        (Outer.Inner(), "Outer.Inner"),
        (Outer.Inner().method, "Outer.Inner.method"),
        (Obliging(), "Obliging"),
    ],
)
def test_a_thing_is_named_by_where_it_stands(thing: object, name: str) -> None:
    assert qualified(thing) == f"{__name__}.{name}"


def test_what_python_brings_has_names_too() -> None:
    names = [qualified(each) for each in (len, str.upper, "".join, json.dumps, 5, None)]
    assert names == [
        "builtins.len",
        "builtins.str.upper",
        "builtins.str.join",
        "json.dumps",
        "builtins.int",
        "builtins.NoneType",
    ]


def test_names_of_ours_do_not_say_where_in_the_package_they_stand() -> None:
    assert qualified(TranscriptProvider) == "turnloom.TranscriptProvider"
