"""Collections in a SQLite file."""

import os
import sqlite3
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from threading import Barrier, Thread

import anyio
import pytest

from tests.support.missing import refused_without
from tests.support.raising import raising
from turnloom.adapters.sqlite.vectors import SqliteVectors, queries
from turnloom.adapters.sqlite.vectors.file import VectorFile
from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.service.retrieval import space_of
from turnloom.assembly.spec.retrieval import Document, Matching
from turnloom.errors import CollectionUnavailable, UsageError
from turnloom.log.spec import LOCAL
from turnloom.testing import HashingEmbedder
from turnloom.testing.contracts import PruningContract, VectorSearchContract, WordsContract
from turnloom.testing.contracts.retrieval.samples import (
    EMBEDDER,
    NOUNS,
    SPLITTER,
    agree,
    everything,
    ids,
    library,
)


def collection(path: Path, name: str = "library", matching: Matching = "vector") -> EmbeddingSearch:
    store = SqliteVectors(path, name, space_of(EMBEDDER))
    return EmbeddingSearch(store, EMBEDDER, SPLITTER, matching)


class TestCollections(VectorSearchContract, WordsContract, PruningContract):
    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        with tempfile.TemporaryDirectory() as folder:
            search = collection(Path(folder) / "vectors.db", matching=matching)
            yield search
            await search.aclose()


class _Across:
    """Writes through one store and reads through another, as two processes would."""

    def __init__(self, writer: VectorSearch, reader: VectorSearch) -> None:
        self.add = writer.add
        self.remove = writer.remove
        self.search = reader.search
        self._both = (writer, reader)

    async def aclose(self) -> None:
        for each in self._both:
            await each.aclose()


class TestCollectionsAcrossStores(VectorSearchContract, WordsContract):
    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vectors.db"
            yield _Across(collection(path, matching=matching), collection(path, matching=matching))


async def test_collections_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "vectors.db"
    one, two = (collection(path, name, "hybrid") for name in ("one", "two"))
    await one.add([Document("a", "red fish", {"k": 1}), Document("b", "blue birds")])
    assert await ids(two, "red fish") == []
    await two.add([Document("a", "red frogs", {"k": 1})])
    assert await ids(one, "red fish", filters={"k": 1}) == ["a"]
    assert [each.content for each in await two.search("red", 5, 0.1)] == ["red frogs"]
    assert await two.remove(["a", "b"]) == 1
    assert await ids(one, "red fish", min_relevance=0.5) == ["a"]


async def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    search = collection(tmp_path / "vectors.db")
    assert await search.search("red fish") == []
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_made_while_it_is_looked_for_was_not_deleted(tmp_path: Path) -> None:
    """Who looks before it is there finds nothing."""
    waiting: list[VectorFile] = []

    class Place(type(tmp_path)):
        """A path to a file that another makes as soon as it was looked for."""

        def exists(self, **how: bool) -> bool:
            is_there = super().exists(**how)
            while waiting:
                with waiting.pop().writing():
                    pass
            return is_there

    file = VectorFile(Place(tmp_path / "vectors.db"), 1)
    waiting.append(file)
    for is_made in (False, True):
        with file.reading() as connection:
            assert (connection is not None) is is_made


async def test_another_embedder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    await collection(path).add([Document("a", "red fish")])
    other = HashingEmbedder(32)
    search = EmbeddingSearch(SqliteVectors(path, "library", space_of(other)), other, SPLITTER)
    for call in (search.add([Document("b", "x")]), search.remove(["a"]), search.search("x")):
        with raising(UsageError, "hashing 1", "64", "32"):
            await call
    assert await ids(collection(path), "red fish") == ["a"]


async def test_only_what_was_written_is_read_again(tmp_path: Path) -> None:
    """The same vectors in memory, whatever was added, replaced and removed in between."""
    path = tmp_path / "vectors.db"
    search, writer = collection(path), collection(path)
    documents = {each.id: each for each in library(40)}
    await writer.add(documents.values())
    for n in range(12):
        changed = Document(f"d{3 * n:03}", f"The {NOUNS[n % 10]} again {n}.")
        documents[changed.id] = changed
        await writer.add([changed, Document(f"d{n + 1:03}", f"Other {n}.")])
        documents[f"d{n + 1:03}"] = Document(f"d{n + 1:03}", f"Other {n}.")
        gone = f"d{39 - n:03}"
        await writer.remove([gone])
        del documents[gone]
        wanted = await everything(list(documents.values()), "the moon again")
        assert agree(await search.search("the moon again", 50, 0), wanted, 50)


async def test_another_file_in_the_same_place_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    search = collection(path)
    for text in ("red fish", "blue birds", "green frogs"):
        await collection(path).add([Document("a", text), Document("b", "white mice")])
        [found] = await search.search(text, 1, 0.9)
        assert found.content == text
        path.unlink()
    with raising(CollectionUnavailable, "deleted"):
        await search.search("green frogs")


async def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    search = collection(path)
    await search.add([Document("a", "red fish")])
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "CREATE TRIGGER full BEFORE INSERT ON vectors BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    with raising(CollectionUnavailable, "full"):
        await search.add([Document("a", "blue birds"), Document("b", "blue birds")])
    assert [each.content for each in await search.search("red fish", 9, 0)] == ["red fish"]


async def test_files_that_are_none_of_ours_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are my notes\n" * 500)
    with closing(sqlite3.connect(tmp_path / "other.db")) as file, file:
        file.execute("CREATE TABLE other (x)")
    for name, version in (("later.db", queries.VERSION + 1), ("earlier.db", queries.VERSION - 1)):
        await collection(tmp_path / name).add([Document("a", "x")])
        with closing(sqlite3.connect(tmp_path / name)) as file, file:
            file.execute(f"PRAGMA user_version = {version}")
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "file").write_text("")
    before = [(tmp_path / name).read_bytes() for name in ("notes.db", "other.db")]
    for name in ("notes.db", "other.db", "later.db", "earlier.db", "folder.db", "file/x.db"):
        search = collection(tmp_path / name)
        with raising(CollectionUnavailable, name.partition("/")[0]):
            await search.remove(["a"])
        if name != "file/x.db":
            with raising(CollectionUnavailable, name):
                await search.search("x")
    assert [(tmp_path / name).read_bytes() for name in ("notes.db", "other.db")] == before


async def test_an_empty_file_becomes_ours(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    path.touch()
    search = collection(path)
    assert await search.search("x") == []
    await search.add([Document("a", "x")])
    assert await ids(search, "x") == ["a"]


async def test_a_locked_file_is_waited_for_and_then_told(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    await collection(path).add([Document("a", "red fish")])
    store = SqliteVectors(path, "library", space_of(EMBEDDER), patience=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with raising(CollectionUnavailable, str(path)):
            await store.replace(LOCAL, ["a"], ())
        assert await ids(collection(path), "red fish") == ["a"]


async def test_searches_do_not_hold_the_loop(tmp_path: Path, strict_loop: None) -> None:
    search = collection(tmp_path / "vectors.db", matching="hybrid")
    await search.add(library(300))
    async with anyio.create_task_group() as tasks:
        for query in NOUNS:
            tasks.start_soon(search.search, f"the {query}", 5, 0)


def test_the_extra_is_named_when_it_is_missing() -> None:
    said = str(refused_without("numpy", "turnloom.adapters.sqlite.vectors"))
    assert 'pip install "turnloom[vectors]"' in said


@pytest.mark.repeats
def test_many_who_make_one_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    refused: list[CollectionUnavailable] = []

    def write(file: VectorFile, together: Barrier) -> None:
        together.wait()
        try:
            with file.writing():
                pass
        except CollectionUnavailable as error:
            refused.append(error)

    for number in range(20):
        given = VectorFile(tmp_path / f"{number}.db", 30.0), Barrier(8)
        threads = [Thread(target=write, args=given) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not refused
