"""Objects of a program in place of settings: taken as they are, or refused at once."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.doors.forms import FILES, FORMS, Order, answer, stored
from tests.support.folders import write_folder
from turnloom import Document, Loom, RagCollection, UsageError
from turnloom.adapters.memory import MemoryStore, MemoryVectors
from turnloom.runtime.logic import codec
from turnloom.testing import FakeClock


class Half:
    """A clock that was forgotten to finish."""

    now = "noon"


class Hollow:
    """A store whose log is none."""

    def __init__(self) -> None:
        self._store = MemoryStore(codec())
        self.log = object()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


# What cannot stand for a setting, and the members that the refusal names.
REFUSED: dict[str, tuple[str, Any, list[str]]] = {
    "a number as a clock": ("clock", 3, ["now"]),
    "a clock that cannot be asked": ("clock", Half(), ["now"]),
    "nothing of a store": (
        "store",
        object(),
        ["log", "inbox", "claims", "snapshots", "plans", "aclose"],
    ),
    "a store without a real log": (
        "store",
        Hollow(),
        ["log.append", "log.read", "log.subscribe", "log.ends", "log.runs", "log.named"],
    ),
    "documents": ("documents", object(), ["newest", "index", "aclose"]),
    "vectors": ("vectors", object(), ["open"]),
    "an engine": ("engine", object(), ["__call__"]),
    "a scheduler": ("scheduler", object(), ["wake", "cancel", "serve", "status"]),
    "entropy": ("entropy", object(), ["token", "below"]),
    "environment": ("environment", object(), ["get"]),
    "connect": ("connect", object(), ["__call__"]),
    "artifacts": ("artifacts", object(), ["put", "query", "consumptions"]),
    "beliefs": ("beliefs", object(), ["beliefs", "observe", "follows_log"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_object_that_lacks_something_is_refused_with_what_it_lacks(case: str) -> None:
    setting, given, lacking = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        Loom(**{"store": "memory", setting: given})
    assert f"'{setting}'" in str(refused.value)
    for name in lacking:
        assert name in str(refused.value)


@pytest.mark.parametrize("setting", ["store", "clock", "scheduler"])
def test_a_class_is_refused(setting: str) -> None:
    with pytest.raises(UsageError, match=f"'{setting}'"):
        Loom(**{setting: {"store": MemoryStore, "clock": FakeClock}.get(setting, Half)})


class Kept:
    """The vectors of collections, in memory."""

    def __init__(self) -> None:
        self.opened: dict[str, Any] = {}

    def open(self, collection: str, space: Any) -> Any:
        return self.opened.setdefault(collection, MemoryVectors())


class Manuals(RagCollection):
    """A collection."""


async def test_vectors_of_the_program_are_filled_and_searched(tmp_path: Path) -> None:
    vectors = Kept()
    async with Loom(store="memory", vectors=vectors) as app:
        collection = app.collection(Manuals)
        await collection.add([Document("a", "How to make tea.")])
        found = await collection.search("tea", 1, 0.0)
    assert [each.content for each in found] == ["How to make tea."]
    assert list(vectors.opened) == [Manuals.name]


class Closable(MemoryStore):
    """A store that knows whether it was closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()


@pytest.mark.parametrize("form", FORMS)
async def test_objects_serve_every_form_and_stay_open(form: str, tmp_path: Path) -> None:
    store, clock = Closable(codec()), FakeClock(datetime(2031, 2, 3, tzinfo=UTC))
    async with Loom(store=store, clock=clock, engine=answer) as app:
        run = await FORMS[form](app, tmp_path)
        assert {event.at for event in await stored(app, run)} == {clock.time}
    assert store.closed == 0


async def test_artifacts_of_the_program_are_used(tmp_path: Path) -> None:
    elsewhere, store = (MemoryStore(codec(), board=False) for _ in range(2))
    async with Loom(store=store, artifacts=elsewhere.artifacts, engine=answer) as app:
        await FORMS["reaction"](app, tmp_path)
    async with Loom(store="memory", artifacts=elsewhere.artifacts) as app:
        board = app.board("shop", app_id="acme")
        board.register(Order)
        items, _ = await board.query_artifacts()
    assert [each.type for each in items] == ["doors.Order"]


@pytest.mark.parametrize("setting", ["artifacts", "beliefs"])
def test_what_follows_the_log_of_another_store_is_refused(setting: str) -> None:
    other = MemoryStore(codec())
    with pytest.raises(UsageError, match=f"'{setting}'"):
        Loom(store="memory", **{setting: getattr(other, setting)})
    Loom(store=other, **{setting: getattr(other, setting)})


def test_a_path_is_always_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(file: Path) -> None:
        async with Loom(store=file, engine=answer) as app:
            await app.start(folder)

    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path, FILES)
    for file in (Path("memory"), Path("sqlite:x"), Path("mysql:y")):
        asyncio.run(use(file))
        assert file.is_file()
