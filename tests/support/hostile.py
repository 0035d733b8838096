"""Arguments that a careless or hostile program gives."""

import datetime
import enum
from typing import Any

from pydantic import BaseModel

# Deeper than any stack.
DEPTH = 100_000


class Colour(enum.Enum):
    RED = "red"


class Sneaky(str):
    def __str__(self) -> str:
        return "another"


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Model(BaseModel):
    n: int = 1


def nested(depth: int = DEPTH) -> list[Any]:
    """A list in a list, and so on."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


DEEP = nested()


def looped() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


def hostile() -> dict[str, Any]:
    """Values by what is odd about them; made anew, as some are used up."""
    return {
        "nothing": None,
        "an integer": 5,
        "a negative integer": -1,
        "an endless integer": 10**400,
        "true": True,
        "NaN": float("nan"),
        "bytes": b"x",
        "half a character": "\ud800",
        "NUL": "a\0b",
        "a line break": "a\nb",
        "slashes": "../../x",
        "an empty text": "",
        "a huge text": "x" * 1_000_000,
        "a subclass of str": Sneaky("x"),
        "an enum": Colour.RED,
        "a date": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "a set": {1},
        "a tuple": (1, "x"),
        "keys that are no texts": {1: 2},
        "deep": DEEP,
        "a circle": looped(),
        "a model": Model(),
        "a class": Model,
        "a generator": (n for n in (1,)),
        "an object": object(),
        "an object that cannot be shown": Unshowable(),
    }
