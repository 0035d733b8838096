"""A handle gives what its reader may see, and nothing leads around it."""

import asyncio
import copy
import gc
import pickle
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.board.reaching import reachable
from tests.board.strategies import boards, consumptions, filters, instants, readers
from turnloom.adapters.memory import MemoryStore
from turnloom.board.logic.matching import may_see
from turnloom.board.logic.queries import write_cursor
from turnloom.board.ports import ArtifactStore
from turnloom.board.service import Witness, bind
from turnloom.board.spec import (
    After,
    Artifact,
    BoardHandle,
    Consumption,
    Envelope,
    FilterConfig,
    Private,
    Reader,
    TypeRegistry,
    artifact_type,
)
from turnloom.errors import UnknownType, UsageError
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.artifacts.samples import ANN, NOON, SECOND, artifact, consumption
from turnloom.testing.contracts.facts import TENANT


def registry(*names: str) -> TypeRegistry:
    types = TypeRegistry()
    for name in names:
        types.register(artifact_type(name=name)(type("Model", (BaseModel,), {})))
    return types


async def board(*artifacts: Artifact, tenant: str = TENANT) -> ArtifactStore:
    store = MemoryStore(CODEC).artifacts
    await store.put(tenant, artifacts)
    return store


def handle_of(
    store: ArtifactStore, reader: Reader = ANN, witness: Witness | None = None
) -> BoardHandle:
    types = registry("test.Note", "test.Other", "a.Same", "b.Same")
    return bind(store, types, reader, lambda: NOON, witness)


async def test_what_a_reader_may_see() -> None:
    store = await board(
        artifact("a"),
        artifact("b", type="test.Other"),
        artifact("c", visibility=Private({"bob"})),
    )
    await store.consume(TENANT, [consumption("a"), consumption("c")])
    ann = handle_of(store)
    items, total = await ann.query_artifacts()
    assert items == (artifact("a"), artifact("b", type="test.Other"))
    assert (items.cursor, total) == (None, None)
    assert await ann.get("a") == artifact("a") and await ann.get("c") is None
    assert (await ann.summary()).by_type == {"test.Note": 1, "test.Other": 1}
    items, total = await ann.query_artifacts(FilterConfig(limit=1), count=True, embed_meta=True)
    [first] = items
    assert isinstance(first, Envelope) and first.consumptions == (consumption("a"),)
    assert total == 2
    rest, _ = await ann.query_artifacts(FilterConfig(limit=1), cursor=items.cursor)
    assert [item.id for item in rest] == ["b"] and rest.cursor is None


async def test_types_have_simple_names_and_none_that_nobody_knows() -> None:
    ann = handle_of(await board(artifact("a"), artifact("b", type="test.Other")))
    simple = FilterConfig(types={"Other"})
    assert [item.id for item in (await ann.query_artifacts(simple))[0]] == ["b"]
    assert (await ann.summary(simple)).total == 1
    assert (await ann.query_artifacts(FilterConfig(types=set()), count=True)) == ((), 0)
    for ask in (ann.query_artifacts, ann.summary):
        with pytest.raises(UnknownType, match=r"'Not'.*test\.Note"):
            await ask(FilterConfig(types={"Not"}))
        with pytest.raises(UnknownType, match=r"'a\.Same'.*'b\.Same'"):
            await ask(FilterConfig(types={"Same"}))


async def test_it_is_judged_when_it_is_read() -> None:
    store = await board(artifact("a", visibility=After(NOON + SECOND)))
    now = NOON
    ann = bind(store, registry(), ANN, lambda: now)
    assert await ann.get("a") is None and (await ann.summary()).total == 0
    now = NOON + SECOND
    items, total = await ann.query_artifacts(count=True)
    assert [item.id for item in items] == ["a"] and total == 1
    assert await ann.get("a") is not None and (await ann.summary()).total == 1


async def test_a_witness_is_told_of_what_was_given_and_of_nothing_else() -> None:
    told: list[str] = []

    def witness(given: Sequence[Artifact]) -> None:
        told.extend(item.id for item in given)

    store = await board(artifact("a"), artifact("b"), artifact("c", visibility=Private({"bob"})))
    ann = handle_of(store, witness=witness)
    await ann.summary()
    await ann.get("c")
    assert not told
    await ann.get("b")
    await ann.query_artifacts(FilterConfig(limit=1), count=True)
    assert told == ["b", "a"]


async def test_readers_get_copies() -> None:
    ann = handle_of(await board(artifact("a")))
    (items, _), got = await ann.query_artifacts(), await ann.get("a")
    assert got is not None
    items[0].payload.clear()
    got.payload["id"] = "other"
    assert await ann.get("a") == artifact("a")


def test_nothing_that_is_reached_from_a_handle_leads_around_it() -> None:
    store, types, reader = MemoryStore(CODEC), registry("test.Note"), Reader("ann")
    hidden = [store, store.artifacts, store.log, types, reader]
    ann = bind(store.artifacts, types, reader, lambda: NOON, hidden.append)
    found = list(reachable(ann))
    assert len(found) > 100
    assert not [value for value in found if any(value is each for each in hidden)]
    assert not [value for value in found if isinstance(value, Reader | TypeRegistry | MemoryStore)]


class _Leaky:
    """Holds what it is bound to in one of the ways that a handle might."""

    def __init__(self, store: MemoryStore, way: str) -> None:
        match way:
            case "attribute":
                self._bound = [store]
            case "method":
                self.get = store.artifacts.get
            case "closure":
                self.get = lambda: store
            case _:
                self._reference = ref(self, lambda _: print(store))


@pytest.mark.parametrize("way", ["attribute", "method", "closure", "reference"])
def test_a_way_around_would_be_found(way: str) -> None:
    store = MemoryStore(CODEC)
    found = list(reachable(_Leaky(store, way)))
    assert any(value is store or value is store.artifacts for value in found)


def test_a_handle_does_not_change_and_is_not_copied() -> None:
    ann: Any = handle_of(MemoryStore(CODEC).artifacts)
    assert not hasattr(ann, "__dict__")
    for name in ("get", "reader", "__class__"):
        with pytest.raises(UsageError):
            setattr(ann, name, None)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UsageError):
            duplicate(ann)


def test_a_handle_that_nobody_holds_is_forgotten() -> None:
    store = MemoryStore(CODEC).artifacts
    ann, held = handle_of(store), ref(store)
    del store
    gc.collect()
    assert held() is not None
    del ann
    gc.collect()
    assert held() is None


async def answers(
    reader: BoardHandle, who: Reader, filter: FilterConfig, ids: Sequence[str]
) -> list[Any]:
    """Everything that a handle can be asked about a filter and some ids, and what it says."""
    said: list[Any] = [await reader.summary(filter), *[await reader.get(id) for id in ids]]
    cursor = None
    while True:
        items, total = await reader.query_artifacts(
            filter, embed_meta=True, cursor=cursor, count=True
        )
        said.append((items, items.cursor, total))
        cursor = items.cursor
        if cursor is None:
            break
    for id in ids:
        try:
            said.append(
                await reader.query_artifacts(filter, cursor=write_cursor(filter, who, id, 0))
            )
        except UsageError as error:
            said.append(str(error))
    return said


@settings(max_examples=40)
@given(
    artifacts=boards(),
    taken=consumptions(),
    reader=readers,
    filter=filters(),
    now=instants(),
    few=st.integers(1, 5),
)
def test_what_is_hidden_changes_no_answer(
    artifacts: list[Artifact],
    taken: list[Consumption],
    reader: Reader,
    filter: FilterConfig,
    now: datetime,
    few: int,
) -> None:
    """A board without what a reader may not see gives that reader the same answers, all of them."""
    seen = [each for each in artifacts if may_see(each.visibility, reader, now)]
    ids = [str(n) for n in range(len(artifacts) + 1)]

    async def ask(artifacts: list[Artifact], taken: list[Consumption]) -> list[Any]:
        store = MemoryStore(CODEC).artifacts
        store.most_compared = few
        await store.put(reader.tenant, artifacts)
        await store.consume(reader.tenant, taken)
        bound = bind(store, registry("a", "b", "c"), reader, lambda: now)
        return await answers(bound, reader, filter, ids)

    known = {each.id for each in seen}
    theirs = [each for each in taken if each.artifact in known]
    assert asyncio.run(ask(artifacts, taken)) == asyncio.run(ask(seen, theirs))
