"""BSON values as JSON values."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import bson
import pytest
from bson import (
    SON,
    Binary,
    Code,
    DatetimeMS,
    DBRef,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion

from turnloom.adapters.mongo.values import as_json

ID = ObjectId("65a1b2c3d4e5f60718293a4b")
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
OPTIONS = CodecOptions[dict[str, Any]](
    tz_aware=True,
    uuid_representation=UuidRepresentation.STANDARD,
    datetime_conversion=DatetimeConversion.DATETIME_AUTO,
)
VALUES = {
    "id": (ID, "65a1b2c3d4e5f60718293a4b"),
    "moment": (MOMENT, "2026-01-02T03:04:05.678000+00:00"),
    "far away": (DatetimeMS(2**60), 2**60),
    "timestamp": (Timestamp(0, 1), "1970-01-01T00:00:00+00:00"),
    "long": (Int64(2**60), 2**60),
    "whole decimal": (Decimal128("12.00"), 12),
    "exact decimal": (Decimal128("0.1"), 0.1),
    "fine decimal": (Decimal128("0.12345678901234567890"), "0.12345678901234567890"),
    "large decimal": (Decimal128("1E+6000"), "1E+6000"),
    "no decimal": (Decimal128("NaN"), "NaN"),
    "nan": (float("nan"), "NaN"),
    "infinity": (float("inf"), "Infinity"),
    "minus infinity": (float("-inf"), "-Infinity"),
    "bytes": (b"\x00\xff", "AP8="),
    "binary": (Binary(b"ab", 128), "YWI="),
    "uuid": (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    "regex": (Regex("^a+$"), "^a+$"),
    "compiled": (re.compile("x"), "x"),
    "code": (Code("return 1"), "return 1"),
    "scoped": (Code("return a", {"a": 1}), "return a"),
    "reference": (DBRef("users", ID, "app"), {"$ref": "users", "$id": str(ID), "$db": "app"}),
    "ends": ([MinKey(), MaxKey()], ["MinKey", "MaxKey"]),
    "nested": (SON([("a", [SON([("b", ID)])])]), {"a": [{"b": str(ID)}]}),
    "plain": ([None, True, 1, 1.5, "ü", {}], [None, True, 1, 1.5, "ü", {}]),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_becomes_of_a_value(name: str) -> None:
    given, expected = VALUES[name]
    stored = bson.decode(bson.encode({"v": given}, codec_options=OPTIONS), OPTIONS)
    found = as_json(stored)["v"]
    assert found == expected
    assert type(found) is type(expected)
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_a_value_of_no_known_type() -> None:
    with pytest.raises(ValueError):
        as_json({"v": object()})
