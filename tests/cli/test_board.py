"""`turnloom board`: artifacts listed, found and published."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.support.warm import Warm
from turnloom.adapters.sqlite import SqliteStore
from turnloom.board.spec.queries import MOST_COMPARED
from turnloom.runtime.logic import codec
from turnloom.testing.contracts.artifacts.samples import series

SHOP = """
from pydantic import BaseModel

from turnloom import Board, Loom, artifact_type


@artifact_type
class Order(BaseModel):
    item: str
    n: int = 1


@artifact_type
class Parcel(BaseModel):
    label: str


async def pack(task):
    item = task.inputs[0].payload["item"]
    if item == "fog":
        raise ValueError("cannot be packed")
    return Parcel(label=item)


def declare(app: Loom) -> Board:
    board = app.board("shop")
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(pack)
    return board


def broken(app: Loom) -> Board:
    raise RuntimeError("not today")


here = Loom(store="memory").board("kept")
here.register(Order)
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    return "shop.py:declare"


def test_artifacts_are_published_listed_and_found(
    turnloom: Call, shop: str, tmp_path: Path
) -> None:
    told = turnloom("board", "publish", shop, "Order", '{"item": "hat"}', "--tag", "vip", "--json")
    hat = json.loads(told.out)
    assert hat["artifact"]["type"] == "shop.Order" and hat["artifact"]["payload"]["n"] == 1
    assert [each["payload"] for each in hat["published"]] == [{"label": "hat"}]
    (tmp_path / "cap.json").write_text('{"item": "cap", "n": 7}', "utf-8")
    words = ("--correlation", "trip 7", "--visibility", "private:packer")
    turnloom("board", "publish", shop, "shop.Order", "@cap.json", *words)

    def found(*words: str) -> list[str]:
        page = json.loads(turnloom("board", *words, "--json").out)
        return [each["payload"].get("item") or each["type"] for each in page["artifacts"]]

    assert found("list") == ["shop.Parcel", "shop.Parcel", "hat"]
    assert found("list", "--agent", "packer", shop)[1] == "cap"
    assert found("query", "--type", "Order") == ["hat"]
    assert found("query", "--type", "Order", "--developer", "--oldest") == ["hat", "cap"]
    assert found("query", "--where", "n >= 5", "--developer") == ["cap"]
    assert found("query", "--where", "item eq hat", "--where", "n exists", shop) == ["hat"]
    assert found("query", "--tag", "vip") == ["hat"]
    assert found("query", "--correlation", "trip 7", "--by", "packer") == ["shop.Parcel"]
    assert found("query", "--until", "2020-01-01") == []
    table = turnloom("board", "list", "--developer").out
    assert "taken by packer" in table and "private:packer" in table and "trip 7" in table


def test_pages_follow_each_other(turnloom: Call, shop: str) -> None:
    for item in ("hat", "cap"):
        turnloom("board", "publish", shop, "Order", json.dumps({"item": item}))
    first = turnloom("board", "list", "--limit", "3")
    cursor = first.err.split("--cursor ")[1].strip()
    rest = json.loads(turnloom("board", "list", "--limit", "3", "--cursor", cursor, "--json").out)
    assert [each["payload"]["item"] for each in rest["artifacts"]] == ["hat"]
    assert (rest["total"], rest["cursor"]) == (4, None)


def test_a_query_goes_through_a_large_board(turnloom: Call, tmp_path: Path) -> None:
    async def fill() -> None:
        store = SqliteStore(tmp_path / "large.db", codec())
        await store.artifacts.put("local", series(MOST_COMPARED + 1))
        await store.aclose()

    asyncio.run(fill())
    query = ("board", "query", "--store", "large.db", "--limit", "1", "--where")
    page = json.loads(turnloom(*query, 'id = "0"', "--json").out)
    assert [each["id"] for each in page["artifacts"]] == ["0"]
    assert (page["total"], page["cursor"]) == (None, None)
    assert "No artifacts" in turnloom(*query, "id = none").err
    first = turnloom(*query, 'id in ["1", "5000"]')
    assert "test.Note" in first.out and "1 are shown" in first.err and "--cursor" in first.err


def test_what_fails_is_said_and_a_board_in_a_variable_has_its_own_store(
    turnloom: Call, shop: str, warm: Warm, tmp_path: Path
) -> None:
    failed = turnloom("board", "publish", shop, "Order", '{"item": "fog"}', code=1)
    assert "cannot be packed" in failed.err
    kept = turnloom("board", "publish", "shop.py:kept", "Order", '{"item": "a"}', "--no-wait")
    assert "Published" in kept.out
    assert turnloom("board", "list", "shop.py:here").err
    assert "--store" in turnloom("board", "list", "shop.py:here", "--store", "a.db", code=2).err


def test_reading_makes_no_store(turnloom: Call, shop: str, tmp_path: Path) -> None:
    for words in (("list", shop), ("query", shop, "--type", "Order")):
        assert "'typo.db'" in turnloom("board", *words, "--store", "typo.db", code=2).err
        assert "No artifacts" in turnloom("board", *words).err
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".py"] == []
    turnloom("board", "publish", shop, "Order", '{"item": "hat"}', "--store", "new.db")
    assert "shop.Order" in turnloom("board", "list", shop, "--store", "new.db").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("publish", "shop.py:declare", "Order", "{bad"), "JSON"),
        (("publish", "shop.py:declare", "Order", "@none.json"), "none.json"),
        (("publish", "shop.py:declare", "Order", '{"itm": 1}'), "item"),
        (("publish", "shop.py:declare", "Ordr", "{}"), "'Order'"),
        (("publish", "shop.py:declre", "Order", "{}"), "'declare'"),
        (("publish", "shop.py:broken", "Order", "{}"), "not today"),
        (("publish", "shop.py:Order", "Order", "{}"), "declare"),
        (("publish", "none.py", "Order", "{}"), "none.py"),
        (("publish", "shop", "Order", "{}"), "FILE.py:NAME"),
        (("publish", "shop.py:declare", "Order", '{"item": "a"}', "--visibility", "x"), "public"),
        (("query", "--where", "n"), "amount >= 5"),
        (("query", "--where", "n lt true"), "integer"),
        (("query", "--since", "yesterday"), "2026-01-31"),
        (("list", "--cursor", "x"), "cursor"),
    ],
)
def test_wrong_use_is_said_with_what_to_do(
    turnloom: Call, shop: str, words: tuple[str, ...], says: str
) -> None:
    assert says in turnloom("board", *words, code=2).err
