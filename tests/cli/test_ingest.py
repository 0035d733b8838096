"""`turnloom ingest`: the texts of a folder put into a collection."""

import json
import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from tests.cli.conftest import Call, Sit
from tests.support.warm import Warm
from turnloom import After, Loom, RagCollection, Reader
from turnloom.assembly.spec import Document, RetrievalResult
from turnloom.board.spec.artifacts import KINDS
from turnloom.cli.visibility import visibility_of

ANYBODY = Reader()


class Library(RagCollection):
    name = "library"


@pytest.fixture(autouse=True)
def loaded(warm: Warm) -> None:
    """What every call here imports."""
    warm.load("numpy", "semantic_text_splitter", "splintr", "wordllama")


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    (folder / "guides" / ".hidden").mkdir(parents=True)
    (folder / "cats.md").write_text("# Cats\n\nCats purr when content.", "utf-8")
    (folder / "guides" / "Money.TXT").write_text("\ufeffThe stock exchange closed early.", "utf-8")
    (folder / "guides" / ".hidden" / "secret.md").write_text("Hidden.", "utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "outside.md").write_text("Outside.", "utf-8")
    return folder


async def find(
    folder: Path, query: str, reader: Reader = ANYBODY, **filters: str
) -> list[RetrievalResult]:
    async with Loom(store="memory", vectors=f"sqlite:{folder}") as app:
        return [*await app.collection(Library).search(query, 9, 0.0, filters, reader)]


async def test_a_folder_is_ingested_once(turnloom: Call, shelf: Path, tmp_path: Path) -> None:
    words = ("ingest", "shelf", "--collection", "library")
    done = await to_thread.run_sync(turnloom, *words)
    assert done.out == "library: 2 added, 0 replaced, 0 unchanged, 2 chunks, 0 skipped\n"
    assert done.err == "skipped link.md: it is a link\n"
    done = await to_thread.run_sync(turnloom, *words)
    assert done.out == "library: 0 added, 0 replaced, 2 unchanged, 0 chunks, 0 skipped\n"
    (shelf / "cats.md").write_text("Cats sleep a lot.", "utf-8")
    done = await to_thread.run_sync(turnloom, *words, "--json")
    assert json.loads(done.out) == {
        **{"collection": "library", "added": 0, "replaced": 1, "unchanged": 1, "chunks": 1},
        "skipped": 0,
    }
    found = await find(tmp_path / ".turnloom" / "vectors.db", "a sleeping cat")
    assert [each.source_id for each in found][0] == "cats.md"
    assert found[0].content == "Cats sleep a lot." and found[0].metadata == {"path": "cats.md"}
    assert {each.source_id for each in found} <= {"cats.md", "guides/Money.TXT"}


async def test_metadata_and_chunks_are_as_asked(
    turnloom: Call, shelf: Path, tmp_path: Path
) -> None:
    (shelf / "long.txt").write_text("One sentence stands here. " * 20, "utf-8")
    words = ("ingest", "shelf", "--collection", "library", "--vectors", "sqlite:here.db")
    words += ("--metadata", "a=b=c", "--tokens", "10", "--overlap", "0")
    await to_thread.run_sync(turnloom, *words, "--metadata", "tenant=acme")
    done = await to_thread.run_sync(turnloom, *words, "--metadata", "tenant=globex")
    assert "3 replaced" in done.out and " 2 chunks" not in done.out
    assert await find(tmp_path / "here.db", "cats", tenant="acme") == []
    found = await find(tmp_path / "here.db", "cats purr", tenant="globex", a="b=c")
    assert found[0].metadata == {"path": "cats.md", "tenant": "globex", "a": "b=c"}
    assert not (tmp_path / ".turnloom").exists()


def test_every_visibility_can_be_said_but_one_that_opens_later() -> None:
    told = ("public", "shared", "private:ann", "labelled:staff", "tenant:acme")
    said = [type(visibility_of(each, "it")) for each in told]
    assert {*said} == {*KINDS} - {After}


@pytest.mark.parametrize(
    ("said", "reader"),
    [
        ("private:ann, bob", Reader("bob", tenant="acme")),
        ("labelled:staff,audit", Reader("ann", {"audit", "staff", "more"}, "acme")),
    ],
)
async def test_who_may_see_documents_is_as_asked(
    turnloom: Call, shelf: Path, tmp_path: Path, said: str, reader: Reader
) -> None:
    words = ("ingest", "shelf", "--collection", "library", "--app-id", "acme", "--visibility")
    vectors = tmp_path / ".turnloom" / "vectors.db"
    others = Reader("eve", {"staff"}, "acme")
    await to_thread.run_sync(turnloom, *words, said)
    assert [each.source_id for each in await find(vectors, "cats purr", reader)] == ["cats.md"]
    assert await find(vectors, "cats purr", others) == []
    done = await to_thread.run_sync(turnloom, *words, "public")
    assert "2 replaced" in done.out
    assert len(await find(vectors, "cats purr", others)) == 1


async def test_documents_are_of_the_tenant_that_is_named(
    turnloom: Call, shelf: Path, tmp_path: Path
) -> None:
    """Two tenants ingest one folder; what is shared, all find."""
    words = ("ingest", "shelf", "--collection", "library", "--json")
    acme, globex = Reader(tenant="acme"), Reader(tenant="globex")
    vectors = tmp_path / ".turnloom" / "vectors.db"

    async def counts(*readers: Reader) -> list[int]:
        return [len(await find(vectors, "cats purr", reader)) for reader in readers]

    await to_thread.run_sync(turnloom, *words, "--app-id", "acme")
    assert await counts(acme, globex, ANYBODY) == [1, 0, 0]
    done = await to_thread.run_sync(turnloom, *words)
    assert json.loads(done.out)["added"] == 2
    assert await counts(acme, globex, ANYBODY) == [1, 0, 1]
    same = (*words, "--app-id", "acme", "--visibility")
    done = await to_thread.run_sync(turnloom, *same, "tenant:acme")
    assert json.loads(done.out)["replaced"] == 2
    assert await counts(acme, globex, ANYBODY) == [1, 0, 1]
    await to_thread.run_sync(turnloom, *same, "shared")
    assert await counts(acme, globex, ANYBODY) == [1, 1, 2]


def test_what_cannot_be_read_is_told_and_the_rest_is_put_in(turnloom: Call, shelf: Path) -> None:
    (shelf / "latin.txt").write_bytes("größe".encode("latin-1"))
    (shelf / "nul.txt").write_bytes(b"a\0b")
    done = turnloom("ingest", "shelf", "--collection", "library", code=1)
    assert done.out == "library: 2 added, 0 replaced, 0 unchanged, 2 chunks, 2 skipped\n"
    assert [line.partition(":")[0] for line in done.err.splitlines()] == [
        "skipped link.md",
        "skipped latin.txt",
        "skipped nul.txt",
    ]


def test_a_folder_that_cannot_be_looked_into_is_told(turnloom: Call, shelf: Path) -> None:
    """One with a longer path than there may be: those without permission are open to root."""
    folder = os.open(shelf, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("deep" * 50, dir_fd=folder)
        outer, folder = folder, os.open("deep" * 50, os.O_RDONLY, dir_fd=folder)
        os.close(outer)
    os.close(folder)
    done = turnloom("ingest", "shelf", "--collection", "library", code=1)
    assert done.out == "library: 2 added, 0 replaced, 0 unchanged, 2 chunks, 1 skipped\n"
    (shelf / "link.md").unlink()
    done = turnloom("ingest", "shelf", "--collection", "library", "--prune", code=1)
    assert done.err.startswith("skipped deep") and done.err.endswith("deep: File name too long\n")


async def test_what_is_gone_from_a_folder_is_pruned(
    turnloom: Call, shelf: Path, tmp_path: Path
) -> None:
    """And nothing else: neither what cannot be read now, nor what other folders, other tenants or
    programs put in."""
    vectors = tmp_path / ".turnloom" / "vectors.db"
    (shelf / "guides" / "dogs.md").write_text("Dogs bark at cats.", "utf-8")
    (shelf / "latin.txt").write_text("Latin cats.", "utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "birds.md").write_text("Birds fear cats.", "utf-8")
    async with Loom(store="memory", vectors=f"sqlite:{vectors}") as app:
        await app.collection(Library).add([Document("noted", "Somebody noted cats.")])

    async def ingest(folder: str, *more: str, code: int = 0) -> dict[str, Any]:
        words = ("ingest", folder, "--collection", "library", "--json", *more)
        return json.loads((await to_thread.run_sync(partial(turnloom, *words, code=code))).out)

    for folder in ("shelf", "other"):
        await ingest(folder)
    await ingest("shelf", "--app-id", "acme")
    assert (await ingest("shelf", "--prune"))["removed"] == 0
    (shelf / "cats.md").unlink()
    (shelf / "guides" / "dogs.md").unlink()
    (shelf / "latin.txt").write_bytes("größe".encode("latin-1"))
    assert "removed" not in await ingest("shelf", code=1)
    assert len(await find(vectors, "cats")) == 5
    done = await ingest(str(shelf / "guides" / ".."), "--prune", code=1)
    assert (done["removed"], done["unchanged"]) == (2, 1)
    found = {each.source_id for each in await find(vectors, "cats")}
    assert found == {"latin.txt", "birds.md", "noted"}
    assert len(await find(vectors, "cats", Reader(tenant="acme"))) == 3


def test_a_folder_is_put_in_by_batches(turnloom: Call, tmp_path: Path) -> None:
    """At most 32 files or a million characters are held at once: each write leaves a generation."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for n in range(70):
        (folder / f"small{n}.txt").write_text(f"Note {n}.", "utf-8")
    words = ("ingest", "shelf", "--collection", "library")
    assert "70 added" in turnloom(*words).out
    assert _writes(tmp_path) == 3
    for n in range(6):  # read three at a time, and written as two and one
        (folder / f"long{n}.txt").write_text(f"Book {n}." + " " * 400_000, "utf-8")
    assert "6 added, 0 replaced, 70 unchanged" in turnloom(*words).out
    assert _writes(tmp_path) == 3 + 4


def _writes(folder: Path) -> int:
    with closing(sqlite3.connect(folder / ".turnloom" / "vectors.db")) as file:
        return file.execute("SELECT count(*) FROM generations").fetchone()[0]


WRONG = {
    ("nowhere", "--collection", "x"): "'nowhere'",
    ("shelf",): "--collection",
    ("shelf", "--collection", ""): "''",
    ("shelf", "--collection", "x", "--tokens", "0"): "0",
    ("shelf", "--collection", "x", "--overlap", "400"): "400",
    ("shelf", "--collection", "x", "--tokens", "9" * 20): "1000000000",
    ("shelf", "--collection", "x", "--metadata", "tenant"): "'tenant'",
    ("shelf", "--collection", "x", "--metadata", "path=a"): "'path'",
    ("shelf", "--collection", "x", *["--metadata", "a=b"] * 2): "'a'",
    ("shelf", "--collection", "x", "--vectors", "memory"): "memory",
    ("shelf", "--collection", "x", "--vectors", "ftp://x"): "'ftp'",
    **{
        ("shelf", "--collection", "x", "--visibility", who): repr(who)
        for who in (
            "",
            "all",
            "public:",
            "shared:",
            "private",
            "private:",
            "labelled:a,,b",
            "tenant: ",
        )
    },
}


def test_wrong_use_is_refused(turnloom: Call, shelf: Path, tmp_path: Path) -> None:
    for words, value in WRONG.items():
        assert value in turnloom("ingest", *words, code=2).err
    assert not (tmp_path / ".turnloom").exists()
    (tmp_path / "notes.db").write_text("these are my notes\n" * 500)
    done = turnloom("ingest", "shelf", "--collection", "x", "--vectors", "sqlite:notes.db", code=1)
    assert "notes.db" in done.err


def test_a_bar_is_shown_to_eyes(sit: Sit, shelf: Path) -> None:
    seat = sit("ingest", "shelf", "--collection", "library")
    seat.until("ingesting")
    seat.until("library: 2 added")
    assert seat.end() == 0
