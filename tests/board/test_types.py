"""Types belong to an app, are found by name, and give back what they were given."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer

from turnloom.board.spec import TypeRegistry, artifact_type
from turnloom.errors import InvalidArtifact, UnknownType, UsageError


class Colour(Enum):
    RED = "red"


@artifact_type
class Pitch(BaseModel):
    product: str
    price: Decimal = Decimal("9.90")


@artifact_type(name="deals.Win")
class Win(BaseModel):
    at: datetime
    day: date
    took: timedelta
    id: UUID
    amount: Decimal
    people: set[str]
    raw: bytes
    colour: Colour
    where: PurePosixPath
    pair: tuple[int, str]
    table: dict[int, list[Pitch]]
    maybe: float | None = None
    alias: str = Field(default="", alias="shownAs")

    @computed_field
    @property
    def double(self) -> Decimal:
        return 2 * self.amount


WIN: dict[str, Any] = {
    "at": datetime(2026, 1, 1, 12, 30, 0, 5, UTC),
    "day": date(2026, 1, 1),
    "took": timedelta(days=1, microseconds=7),
    "id": UUID(int=7),
    "amount": Decimal("0.10"),
    "people": {"ann", "bob", "eve"},
    "raw": "größe".encode(),
    "colour": Colour.RED,
    "where": PurePosixPath("a/b"),
    "pair": (1, "x"),
    "table": {1: [Pitch(product="p")]},
    "shownAs": "shown",
}


@pytest.fixture
def types() -> TypeRegistry:
    found = TypeRegistry()
    found.register(Pitch)
    found.register(Win)
    return found


def test_every_field_comes_back(types: TypeRegistry) -> None:
    win = Win(**WIN)
    name, payload = types.write(win)
    assert name == "deals.Win" and "double" not in payload and payload["shownAs"] == "shown"
    assert types.read(name, payload) == win
    assert types.check("Win", payload).keys() == payload.keys()


def test_names(types: TypeRegistry) -> None:
    full = f"{__name__}.Pitch"
    assert types.names == (full, "deals.Win")
    assert types.register(Pitch) == full
    for name in (full, "Pitch"):
        assert types.resolve(name) == full
    assert types.resolve("Win") == "deals.Win"
    assert types.model("Win") is types.model("deals.Win") is Win


def test_an_unknown_name_is_an_error_that_names_the_known(types: TypeRegistry) -> None:
    with pytest.raises(UnknownType, match=r"'Pich'.*deals\.Win.*'Pitch'"):
        types.resolve("Pich")
    with pytest.raises(UnknownType, match="'Pitch'"):
        TypeRegistry().resolve("Pitch")


def test_a_simple_name_of_several_is_an_error_that_names_them(types: TypeRegistry) -> None:
    @artifact_type(name="other.Pitch")
    class Other(BaseModel):
        pass

    types.register(Other)
    with pytest.raises(UnknownType, match=r"test_types\.Pitch'.*'other\.Pitch'"):
        types.resolve("Pitch")
    assert types.resolve("other.Pitch") == "other.Pitch"


def test_two_types_of_one_name_are_refused(types: TypeRegistry) -> None:
    @artifact_type(name="deals.Win")
    class Lost(BaseModel):
        pass

    with pytest.raises(UsageError, match=r"'deals\.Win'"):
        types.register(Lost)
    assert TypeRegistry().register(Lost) == "deals.Win"


def test_a_mark_is_not_inherited_and_needed(types: TypeRegistry) -> None:
    class Special(Pitch):
        pass

    with pytest.raises(UsageError, match="@artifact_type"):
        types.register(Special)
    with pytest.raises(UnknownType):
        types.write(Special(product="x"))
    with pytest.raises(UnknownType):
        TypeRegistry().write(Pitch(product="x"))


def test_a_payload_is_checked_and_completed(types: TypeRegistry) -> None:
    assert types.check("Pitch", {"product": "p"}) == {"product": "p", "price": "9.90"}
    for payload, named in (({"price": 1}, "product"), ({"product": 5}, "product")):
        with pytest.raises(InvalidArtifact, match=named):
            types.check("Pitch", payload)
    for payload in (None, {"product": object()}):
        with pytest.raises(InvalidArtifact):
            types.check("Pitch", payload)


def test_what_would_not_come_back_is_refused_with_a_remedy(types: TypeRegistry) -> None:
    @artifact_type
    class Raw(BaseModel):
        raw: bytes = b""
        ratio: float = 0.0

    @artifact_type
    class Sound(Raw):
        model_config = ConfigDict(
            ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings"
        )

    @artifact_type
    class Shrinking(BaseModel):
        text: str

        @field_serializer("text")
        def cut(self, text: str) -> str:
            return text[:3]

    for model in (Raw, Sound, Shrinking):
        types.register(model)
    for value in (Raw(raw=b"\xff"), Raw(ratio=float("nan"))):
        with pytest.raises(InvalidArtifact, match="ser_json_bytes"):
            types.write(value)
    name, payload = types.write(Sound(raw=b"\xff\0", ratio=float("inf")))
    assert types.read(name, payload) == Sound(raw=b"\xff\0", ratio=float("inf"))
    types.write(Sound(ratio=float("nan")))
    with pytest.raises(InvalidArtifact):
        types.write(Shrinking(text="longer"))
