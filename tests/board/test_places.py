"""Where artifacts are kept: beside the runs, or in a database of their own."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.world import PATIENCE
from turnloom import Loom, UsageError, artifact_type


@artifact_type(name="places.Note")
class Note(BaseModel):
    text: str


async def put(text: str, **settings: Any) -> None:
    """Publish something in a program that ends then."""
    async with Loom(**settings) as app:
        board = app.board()
        board.register(Note)
        await board.publish(Note(text=text))
        await board.run_until_idle(PATIENCE)
        assert text in await texts(app, "reading")
    with pytest.raises(UsageError):
        await board.query_artifacts()


async def texts(app: Loom, name: str = "board") -> list[Any]:
    """What is on the board, for another program or for another board of the same one."""
    board = app.board(name)
    board.register(Note)
    items, _ = await board.query_artifacts()
    return [each.payload["text"] for each in items]


@pytest.mark.parametrize("said", [None, ""])
async def test_beside_the_runs_if_nothing_is_said(tmp_path: Path, said: str | None) -> None:
    file = str(tmp_path / "turnloom.db")
    await put("kept", store=file, artifacts=said)
    await put("gone", store="memory", artifacts=said)
    async with Loom(store=file) as app:
        assert await texts(app) == ["kept"]


async def test_in_a_database_of_their_own(tmp_path: Path, postgres_url: str) -> None:
    file = str(tmp_path / "turnloom.db")
    await put("elsewhere", store=file, artifacts=postgres_url)
    await put("from memory", store="memory", artifacts=postgres_url)
    async with Loom(store="memory", artifacts=postgres_url) as app:
        assert {"elsewhere", "from memory"} <= {*await texts(app)}
    async with Loom(store=file) as app:
        assert await texts(app) == []


def test_a_place_that_is_none() -> None:
    with pytest.raises(UsageError, match="'mongodb'"):
        Loom(store="memory", artifacts="mongodb://host").board()
