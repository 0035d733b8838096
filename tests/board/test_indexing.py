"""Fields that a type declares as indexed are looked up, not compared one by one."""

import sqlite3
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import psycopg
import pytest
from pydantic import BaseModel, Field, SecretStr

from turnloom import FilterConfig, Loom, Task, UsageError, artifact_type
from turnloom.adapters.memory.index import MemoryIndex
from turnloom.adapters.postgres import PostgresArtifacts, artifact_queries
from turnloom.adapters.sqlite import SqliteStore, queries
from turnloom.board.logic.queries import Outline
from turnloom.board.logic.rows import rows_of
from turnloom.board.ports import ArtifactIndex
from turnloom.board.service import IndexReader
from turnloom.board.spec import Artifact, Reader
from turnloom.board.spec.queries import IndexPlan, IndexStretch
from turnloom.runtime.logic import codec
from turnloom.testing.contracts.artifacts.samples import ANN, LATER, artifact
from turnloom.testing.contracts.facts import TENANT

MANY = 600
NOTES = [artifact(str(n), payload={"n": n // 2, "m": n % 2}, indexed=("n",)) for n in range(MANY)]


class Level(Enum):
    LOW = "low"


class Order(BaseModel):
    number: int
    level: Level
    kind: Literal["a", "b"]
    day: date
    at: datetime | None = None
    short: Annotated[str, Field(max_length=3)] | None = None
    done: bool = False
    price: float = 0
    renamed: str = Field(default="", alias="shownAs")
    secret: SecretStr = SecretStr("")
    words: list[str] = []
    either: int | list[int] = 0
    anything: Any = None
    left_out: int = Field(default=0, exclude=True)


class Counting:
    """An index that counts the rows that it gives to be compared."""

    def __init__(self, index: ArtifactIndex) -> None:
        self._index = index
        self.find, self.tally, self.counts = index.find, index.tally, index.counts
        self.consumptions, self.weigh = index.consumptions, index.weigh
        self.rows = 0

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        stretch = await self._index.walk(plan, most)
        self.rows += len(stretch.rows)
        return stretch


def asking(*where: tuple[str, str, Any], **more: Any) -> FilterConfig:
    return FilterConfig(types={"test.Note"}, where=list(where), **more)


@asynccontextmanager
async def kept(
    kind: str, artifacts: Sequence[Artifact], path: Path, url: str
) -> AsyncGenerator[ArtifactIndex]:
    """An index of a kind with some artifacts."""
    if kind == "memory":
        index = MemoryIndex()
        index.keep(TENANT, rows_of(TENANT, artifacts))
        yield index
    elif kind == "sqlite":
        store = SqliteStore(path / "turnloom.db", codec())
        await store.artifacts.put(TENANT, artifacts)
        yield store.artifacts
        await store.aclose()
    else:
        postgres = PostgresArtifacts(url)
        await postgres.put(TENANT, artifacts)
        yield postgres
        await postgres.aclose()


async def looked_at(index: ArtifactIndex, filter: FilterConfig, reader: Reader = ANN) -> list[int]:
    """How many artifacts a query finds, and how many rows it compares for that."""
    counting = Counting(index)
    page = await IndexReader(counting, reader, LATER).query(filter, None, False, False)
    return [len(page.items), counting.rows]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_the_rows_looked_at_are_those_that_match(
    kind: str, tmp_path: Path, postgres_url: str
) -> None:
    earlier = [artifact(f"earlier {n}", payload={"n": n}, type="test.Old") for n in range(5)]
    later = artifact("later", payload={"n": 3}, type="test.Old", indexed=("n",))
    async with kept(kind, [*NOTES, *earlier, later], tmp_path, postgres_url) as index:
        assert await looked_at(index, asking(("n", "eq", 7))) == [2, 2]
        assert await looked_at(index, asking(("n", "in", [7, 8.0, "9"]))) == [4, 4]
        assert await looked_at(index, asking(("n", "eq", MANY))) == [0, 0]
        assert await looked_at(index, asking(("n", "eq", 7), ("m", "eq", 0))) == [1, 2]
        assert await looked_at(index, asking(("m", "eq", 2))) == [0, MANY]
        old = FilterConfig(types={"test.Old"}, where=[("n", "eq", 3)])
        assert await looked_at(index, old) == [2, 6]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_summary_reads_no_rows(kind: str, tmp_path: Path, postgres_url: str) -> None:
    async with kept(kind, NOTES, tmp_path, postgres_url) as index:
        counting = Counting(index)
        reader = IndexReader(counting, ANN, LATER)
        assert (await reader.summary(FilterConfig())).by_type == {"test.Note": MANY}
        assert counting.rows == 0
        assert (await reader.summary(asking(("m", "eq", 0)))).total == MANY // 2
        assert counting.rows == MANY


def plan_for(filter: FilterConfig) -> IndexPlan:
    return Outline(filter, ANN).plan(None, LATER)


async def test_sqlite_searches_by_the_key_of_the_terms(tmp_path: Path, postgres_url: str) -> None:
    async with kept("sqlite", NOTES, tmp_path, postgres_url):
        statement = queries.WALK.format(checks="", order="ASC")
        with closing(sqlite3.connect(tmp_path / "turnloom.db")) as file:
            asked = f"EXPLAIN QUERY PLAN {statement}"
            steps = [row[3] for row in file.execute(asked, (0,) * statement.count("?"))]
    assert [step.split(" (")[0] for step in steps] == [
        "SEARCH e USING PRIMARY KEY",
        "SEARCH a USING INTEGER PRIMARY KEY",
    ]
    assert "term=?" in steps[0]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)


async def test_postgresql_reads_the_entries_of_the_value(tmp_path: Path, postgres_url: str) -> None:
    statement = artifact_queries.walk(plan_for(asking(("n", "eq", 7))), 100)
    async with (
        kept("postgres", NOTES, tmp_path, postgres_url),
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection,
    ):
        await connection.execute("ANALYZE turnloom_terms, turnloom_artifacts")
        explained = psycopg.sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + statement
        [row] = await (await connection.execute(explained)).fetchall()
    top: dict[str, Any] = row[0][0]["Plan"]
    read = [node for node in nodes(top) if node.get("Relation Name") == "turnloom_terms"]
    assert read and all(node["Node Type"] != "Seq Scan" for node in read)
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) <= 2 * len(read)


async def test_what_a_board_publishes_is_indexed_as_its_type_declares(tmp_path: Path) -> None:
    @artifact_type(name="test.Note", index=["n"])
    class Note(BaseModel):
        n: int

    @artifact_type(name="test.Reply", index=["to"])
    class Reply(BaseModel):
        to: int

    async def answer(task: Task) -> Reply:
        return Reply(to=int(task.inputs[0].payload["n"]))

    path = tmp_path / "turnloom.db"
    async with Loom(store=f"sqlite:{path}") as app:
        board = app.board("notes")
        board.agent("replier").consumes(Note).publishes(Reply).with_engines(answer)
        for n in range(6):
            await board.publish(Note(n=n % 3))
        await board.run_until_idle(60)
        for name, field in (("Note", "n"), ("Reply", "to")):
            found, _ = await board.query_artifacts(
                FilterConfig(types={name}, where=[(field, "eq", 1)])
            )
            assert [each.payload[field] for each in found] == [1, 1]
    store = SqliteStore(path, codec())
    reader = Reader(tenant="local")
    for name, field in (("test.Note", "n"), ("test.Reply", "to")):
        filter = FilterConfig(types={name}, where=[(field, "eq", 1)])
        assert await looked_at(store.artifacts, filter, reader) == [2, 2]
    await store.aclose()


async def test_what_was_published_before_the_declaration_is_found(tmp_path: Path) -> None:
    for index, numbers in (([], range(3)), (["n"], range(3, 6)), (["m"], range(6, 9))):

        @artifact_type(name="test.Note", index=index)
        class Note(BaseModel):
            n: int
            m: str = "x"

        async with Loom(store=f"sqlite:{tmp_path / 'turnloom.db'}") as app:
            board = app.board("notes")
            board.register(Note)
            for number in numbers:
                await board.publish(Note(n=number % 3))
            asked = FilterConfig(types={"Note"}, where=[("n", "eq", 1), ("m", "in", ["x"])])
            found = [each.payload["n"] async for each in board.iter_artifacts(asked)]
            assert found == [1] * (numbers.stop // 3)


SIMPLE = ["number", "level", "kind", "day", "at", "short", "done", "price", "shownAs"]


def test_simple_fields_can_be_indexed() -> None:
    assert artifact_type(name="x", index=SIMPLE)(Order) is Order
    assert artifact_type(name="x", index=())(Order) is Order


@pytest.mark.parametrize(
    "index",
    [
        *(["secret"], ["words"], ["either"], ["anything"], ["left_out"], ["renamed"], ["nunber"]),
        *(["number", "number"], ["number.x"], [""], [1], "number", {"number"}, None, 5),
    ],
)
def test_other_fields_are_refused_where_they_are_declared(index: Any) -> None:
    with pytest.raises(UsageError) as raised:
        artifact_type(name="x", index=index)(Order)
    assert "'Order'" in str(raised.value)
