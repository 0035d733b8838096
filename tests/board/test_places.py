"""Where artifacts are kept: beside the runs, or in a database of their own."""

from pathlib import Path
from typing import Any

import pytest

from turnloom.errors import UsageError
from turnloom.testing.contracts.artifacts.samples import artifact, ids
from turnloom.wiring import Parts, assemble


def parts_of(**settings: Any) -> Parts:
    return assemble(settings)


@pytest.mark.parametrize("store", ["memory", "turnloom.db"])
async def test_beside_the_runs_if_nothing_is_said(tmp_path: Path, store: str) -> None:
    place = store if store == "memory" else str(tmp_path / store)
    for said in (None, ""):
        parts = parts_of(store=place, artifacts=said)
        assert parts.artifacts is parts.store.artifacts and parts.artifacts.follows_log
        await parts.artifacts.put([artifact("a")])
        assert await ids(parts.artifacts) == ["a"]
        await parts.aclose()
        with pytest.raises(UsageError, match="closed"):
            await parts.artifacts.put([artifact("a")])


@pytest.mark.parametrize("store", ["memory", "turnloom.db"])
async def test_in_a_database_of_their_own(tmp_path: Path, store: str, postgres_url: str) -> None:
    place = store if store == "memory" else str(tmp_path / store)
    parts = parts_of(store=place, artifacts=postgres_url)
    assert not parts.artifacts.follows_log and not parts.store.artifacts.follows_log
    await parts.artifacts.put([artifact("a")])
    again = parts_of(store="memory", artifacts=postgres_url)
    assert await ids(again.artifacts) == ["a"] and await ids(parts.store.artifacts) == []
    for each in (again, parts):
        await each.aclose()
        with pytest.raises(UsageError, match="closed"):
            await each.artifacts.put([artifact("a")])


def test_a_place_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"reached by 'mongodb'.*`postgresql://…`, or leave"):
        parts_of(artifacts="mongodb://host")
