"""What the model calls of a run cost: known, at least, unknown, or none."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Price, Principal, Task, UnknownRun, Usage
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import UsageError
from turnloom.explain.spec.cost import Cost
from turnloom.guards.spec import find_price
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import codec
from turnloom.wiring.prices import listed_prices

FOLDER = {
    "orchestrator.json": '{"max_turns": 2}',
    "agents.json": '{"A": {"system_message": "You are A."}}',
    "handoffs.json": '[{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}]',
}


class Bills:
    """An engine whose calls use tokens of models, in turn."""

    def __init__(self, *calls: tuple[str, Usage]) -> None:
        self._calls = list(calls)

    async def __call__(self, task: Task) -> Answer:
        model, usage = self._calls.pop(0)
        return Answer("Said.", usage, model=model)


async def billed(where: Path, calls: Sequence[tuple[str, Usage]]) -> tuple[Any, Cost | None]:
    """The timeline and the cost of a run with these calls."""
    folder = write_folder(where / "served", FOLDER, "Bills")
    async with Loom(store="memory", engine=Bills(*calls)) as app:
        run = await app.start(folder)
        await run.finished()
        return await app.explain.timeline(run.id), await app.explain.cost(run.id)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def declare(where: Path, text: str) -> None:
    (where / "turnloom.toml").write_text(f"[prices]\n{text}", "utf-8")


async def test_cached_input_has_its_own_price(tmp_path: Path) -> None:
    declare(tmp_path, "m = { input = 10, cached = 1, cache_write = 20, output = 100 }")
    used = Usage(1_000_000, 10_000, cached_tokens=500_000, cache_write_tokens=100_000)
    found, cost = await billed(tmp_path, [("m", used), ("lab:m-2026-01-31", Usage(100_000))])
    assert cost == found.cost == Cost(pytest.approx(4 + 0.5 + 2 + 1 + 1))  # type: ignore[arg-type]
    turns = [row.cost.dollars for row in found.rows if row.what.startswith("turn")]
    assert turns == pytest.approx([7.5, 1.0])
    assert "Cost: $8.50" in str(found)


async def test_a_model_without_a_price_is_unknown_and_never_nothing(tmp_path: Path) -> None:
    found, cost = await billed(tmp_path, [("mystery", Usage(9, 9)), ("gpt-4o", Usage())])
    assert cost == found.cost == Cost(None, ("mystery", "gpt-4o"))
    assert str(cost) == "unknown"


async def test_known_and_unknown_together_are_at_least_the_known(tmp_path: Path) -> None:
    calls = [("openai:gpt-4o-2024-08-06", Usage(1_000_000)), ("mystery", Usage(9, 9))]
    found, cost = await billed(tmp_path, calls)
    price = listed_prices()["gpt-4o"]
    assert cost == found.cost == Cost(price.input, ("mystery",))
    assert str(cost) == "at least $2.50"


async def test_a_run_without_a_model_has_no_cost(tmp_path: Path) -> None:
    found, cost = await billed(tmp_path, [("", Usage()), ("", Usage())])
    assert cost is None and found.cost is None


async def test_a_price_for_any_model_replaces_the_list(tmp_path: Path) -> None:
    declare(tmp_path, '"*" = { input = 0, output = 0 }')
    _, cost = await billed(tmp_path, [("gpt-4o", Usage(9, 9)), ("mystery", Usage(9, 9))])
    assert cost == Cost(0.0)
    assert str(cost) == "$0.00"


@pytest.mark.parametrize(
    "text", ["m = 3", "m = { input = 1 }", "m = { input = -1, output = 1 }", "m = { in = 1 }"]
)
def test_what_is_no_price_is_refused(tmp_path: Path, text: str) -> None:
    declare(tmp_path, text)
    with pytest.raises(UsageError, match="prices.m"):
        Loom(store="memory")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("m", "m"),
        ("lab:m", "m"),
        ("router/lab/m-20260131", "m"),
        ("m-2", "*"),
        (None, "*"),
    ],
)
def test_prices_are_found_by_names_with_provider_and_date(name: str | None, found: str) -> None:
    prices = {each: Price(input=1, output=len(each)) for each in ("m", "*")}
    assert find_price(prices, name) is prices[found]


@pytest.mark.parametrize(
    ("amount", "words"), [(1234.5, "$1,234.50"), (0.25, "$0.25"), (0.00042, "$0.00042")]
)
def test_small_amounts_keep_two_digits(amount: float, words: str) -> None:
    assert str(Cost(amount)) == words


class ReadLog:
    """A log that notes after which position each read begins."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.read_after: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        self.read_after.append(after)
        return await self._log.read(run, after)


async def test_a_cost_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    declare(tmp_path, "m = { input = 10, output = 100 }")
    folder = write_folder(tmp_path / "served", FOLDER, "Bills")
    store = MemoryStore(codec())
    store.log = log = ReadLog(store.log)  # type: ignore[assignment]
    used = ("m", Usage(100_000))
    async with Loom(store=store, engine=Bills(used, used, used, used)) as app:
        run = await app.start(folder)
        await run.finished()
        log.read_after.clear()
        costs = [await app.explain.cost(run.id) for _ in range(3)]
        seen = app.as_principal(Principal("local", "ann", "developer"))
        costs.append(await seen.explain.cost(run.id))
        assert [each.dollars for each in costs if each] == pytest.approx([2.0] * 4)
        assert log.read_after == [0]
        assert await app.explain.cost(run.id, turn=2) == Cost(pytest.approx(1.0))  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            await app.explain.cost(run.id, turn=3)
        with pytest.raises(UnknownRun):
            await app.explain.cost("other")


async def test_a_cost_is_that_of_the_run_that_has_the_id_now(tmp_path: Path) -> None:
    declare(tmp_path, "m = { input = 10, output = 100 }")
    folder = write_folder(tmp_path / "served", FOLDER, "Bills")
    calls = [("m", Usage(tokens)) for tokens in (100_000, 100_000, 300_000, 300_000)]
    async with Loom(store=str(tmp_path / "runs.db"), engine=Bills(*calls)) as app:
        view = app.as_principal(Principal("local", "ann", "developer"))
        for dollars in (2.0, 6.0):
            run = await view.start(folder, id="same")
            await run.finished()
            assert await app.explain.cost(run.id) == Cost(pytest.approx(dollars))  # type: ignore[arg-type]
            removed = [
                each.run
                async for each in app.history.prune(before=datetime.max.replace(tzinfo=UTC))
            ]
            assert removed == ["same"]
            with pytest.raises(UnknownRun):
                await app.explain.cost("same")
