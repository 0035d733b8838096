"""What an artifact may be, and what is the same content."""

from collections.abc import Callable
from datetime import timedelta, timezone
from typing import Any

import pytest

from turnloom.board.logic.rows import read_artifact, rows_of
from turnloom.board.spec import Artifact, Public
from turnloom.errors import ArtifactExists, InvalidArtifact
from turnloom.testing.contracts.artifacts.samples import LATER, NOON, artifact


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ""},
        {"id": "a\0b"},
        {"id": "\ud800"},
        {"id": 5},
        {"type": ""},
        {"created_at": NOON.replace(tzinfo=None)},
        {"created_at": None},
        {"tags": "won"},
        {"tags": {""}},
        {"parents": "a"},
        {"visibility": "public"},
    ],
)
def test_an_artifact_that_cannot_be(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"id": "a", "type": "t", "payload": {}, "produced_by": "ann"}
    with pytest.raises(InvalidArtifact, match=rf"Artifact\.{min(wrong)}"):
        Artifact(**{**fields, "created_at": NOON, **wrong})


def test_an_artifact_does_not_change() -> None:
    with pytest.raises(AttributeError):
        artifact("a").version = 2
    zone = timezone(timedelta(hours=5.5))
    assert artifact("a", created_at=NOON.astimezone(zone)) == artifact("a", created_at=NOON)


@pytest.mark.parametrize(
    "make", [lambda: artifact("a", parents=(5,)), lambda: artifact("a", run=b"r")]
)
def test_what_would_come_back_as_something_else_is_refused(make: Callable[[], Artifact]) -> None:
    with pytest.raises(InvalidArtifact, match="'a'|Artifact.run"):
        rows_of("acme", [make()])


def test_one_id_has_one_content_and_time_is_not_content() -> None:
    [row] = rows_of("acme", [artifact("a"), artifact("a", created_at=LATER)])
    assert row.at == rows_of("acme", [artifact("a")])[0].at
    with pytest.raises(ArtifactExists, match="'a'"):
        rows_of("acme", [artifact("a"), artifact("a", tags={"t"})])


def test_a_text_that_holds_no_artifact_is_an_error() -> None:
    with pytest.raises(InvalidArtifact):
        read_artifact(Public(), "{}")
