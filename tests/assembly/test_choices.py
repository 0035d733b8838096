"""Several choices as one provider: each in its time, each with its fallback."""

import asyncio

import pytest

from tests.assembly.boards import Turn
from turnloom import ContextRequest, ContextSlice, FilteredContextProvider
from turnloom.assembly.logic.slices import gathered_fact
from turnloom.assembly.service.gathering import Choices
from turnloom.assembly.spec import ChosenProvider
from turnloom.board.spec import FilterConfig
from turnloom.errors import ContextUnavailable
from turnloom.testing.contracts.artifacts.samples import series


async def raises(request: ContextRequest) -> ContextSlice:
    raise LookupError("no such shelf")


async def hangs(request: ContextRequest) -> ContextSlice:
    await asyncio.sleep(60)
    return ContextSlice(items=[])


async def tells(request: ContextRequest) -> ContextSlice:
    return ContextSlice(items=[{"told": dict(request.config)}])


async def test_they_are_composed_and_each_is_told_its_own() -> None:
    everything = FilteredContextProvider()
    first = FilteredContextProvider(FilterConfig(limit=1, order="created_at"))
    choices = Choices(
        ChosenProvider(tells, config={"a": 1}),
        ChosenProvider(first),
        ChosenProvider(everything),
        ChosenProvider(tells, name="b"),
    )
    gathered = await Turn(series(3)).gather(choices, name="context")
    assert [(each.provider, each.get("told")) for each in gathered.items] == [
        ("context/tells", {"a": 1}),
        ("context/FilteredContextProvider", None),
        ("context/FilteredContextProvider", None),
        ("context/FilteredContextProvider", None),
        ("context/b", {}),
    ]


async def test_the_fallback_of_one_leaves_the_others_alone() -> None:
    choices = Choices(
        ChosenProvider(hangs, fallback=tells, timeout=0.01, config={"n": 1}), ChosenProvider(tells)
    )
    gathered = await Turn().gather(choices, name="context")
    assert [each["told"] for each in gathered.items] == [{"n": 1}, {}]
    (failed,) = gathered.failures
    assert (failed.provider, failed.fallback) == ("hangs", "tells")
    fact = gathered_fact(gathered, {})
    assert (fact.provider, fact.fallback) == ("context", False)
    assert [(call.provider, call.error) for call in fact.calls] == [
        ("context", ""),
        ("context/hangs", "CancelledError"),
        ("context/tells", ""),
        ("context/tells", ""),
    ]


async def test_one_that_fails_without_a_fallback_is_named_and_told_once() -> None:
    choices = Choices(
        ChosenProvider(raises, fallback=tells),
        ChosenProvider(tells),
        ChosenProvider(raises, name="shelf"),
    )
    with pytest.raises(ContextUnavailable) as caught:
        await Turn().gather(choices, name="context")
    assert str(caught.value).count("LookupError: no such shelf") == 1
    assert "'ann'" in str(caught.value) and "'shelf'" in str(caught.value)
    told = [(each.provider, each.fallback) for each in caught.value.failures]
    assert told == [("raises", "tells"), ("shelf", "")]
