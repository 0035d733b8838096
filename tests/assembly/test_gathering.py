"""Gathering: one provider or its fallback, in time, with a slice that says where it is from."""

import asyncio
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from tests.assembly.boards import Turn
from tests.assembly.recent_wins import RecentWinsProvider
from turnloom import (
    CompositeProvider,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilteredContextProvider,
    RedactingProvider,
)
from turnloom.assembly.events import ProviderFailed
from turnloom.assembly.logic.slices import gathered_fact
from turnloom.board.spec import Artifact, Private, Reader
from turnloom.errors import ContextUnavailable
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND, artifact, series

Slice = ContextSlice


def pitches() -> list[Artifact]:
    won = {"type": "PitchResult", "produced_by": "closer", "tags": {"deal_won"}}
    return [
        artifact(
            f"win{n}",
            payload={"tagline": f"t{n}", "closer": "c", "private_notes": f"whisper {n}"},
            created_at=NOON + n * SECOND,
            **won,
        )
        for n in range(5)
    ] + [
        artifact("lost", payload={"tagline": "t", "closer": "c"}, type="PitchResult"),
        artifact("pitch", type="Pitch", payload={"product": "hats"}, correlation_id="c1"),
        artifact("draft", type="Pitch", payload={"product": "hat"}, correlation_id="c1"),
    ]


# ------------------------------------------------------------------ the blueprint


async def test_the_provider_of_the_blueprint_runs_as_it_stands() -> None:
    board = pitches()
    turn = Turn(board, correlation_id="c1", inputs=(board[6],))
    gathered = await turn.gather(RecentWinsProvider(max_wins=3))
    assert [(each.provider, each.artifact, each.redacted) for each in gathered.items] == [
        ("RecentWinsProvider/DefaultCorrelationProvider", "draft", ()),
        ("RecentWinsProvider", "win4", ("private_notes",)),
        ("RecentWinsProvider", "win3", ("private_notes",)),
        ("RecentWinsProvider", "win2", ("private_notes",)),
    ]
    assert gathered.items[1] == {
        "type": "PitchResult",
        "payload": {"tagline": "t4", "closer": "c"},
        "produced_by": "closer",
    }
    fact = gathered_fact(gathered, {})
    assert "whisper" not in str(fact)
    assert [(call.provider, call.items) for call in fact.calls] == [
        ("RecentWinsProvider", 4),
        ("RecentWinsProvider/DefaultCorrelationProvider", 1),
    ]


async def test_it_can_be_put_into_others() -> None:
    provider = CompositeProvider(
        RedactingProvider(RecentWinsProvider(), ["tagline"]), FilteredContextProvider()
    )
    gathered = await Turn(pitches()).gather(provider)
    first = gathered.items[0]
    assert (first.artifact, first.redacted) == ("win4", ("private_notes", "tagline"))
    assert first.provider == "CompositeProvider/RedactingProvider/RecentWinsProvider"
    assert [each.artifact for each in gathered.items] == [
        *("win4", "win3", "win2", "win0", "lost", "pitch", "draft", "win1"),
    ]


# ------------------------------------------------------------------ names


async def test_a_provider_is_called_what_it_was_chosen_as() -> None:
    turn = Turn(series(1))
    gathered = await turn.gather(FilteredContextProvider(), name="everything")
    assert gathered.provider == gathered.items[0].provider == "everything"
    assert [each.provider for each in gathered.calls] == ["everything"]


async def test_what_is_asked_side_by_side_belongs_to_who_asks() -> None:
    async def both(request: ContextRequest) -> ContextSlice:
        asked = (DefaultCorrelationProvider()(request), FilteredContextProvider()(request))
        one, other = await asyncio.gather(*asked)
        return Slice(items=[*one.items, *other.items])

    gathered = await Turn(series(1, correlation_id="c"), correlation_id="c").gather(both)
    paths = ["both/DefaultCorrelationProvider", "both/FilteredContextProvider"]
    assert [each.provider for each in gathered.items] == paths
    assert [each.provider for each in gathered.calls] == ["both", *paths]


# ------------------------------------------------------------------ what is asked


async def test_a_request_cannot_be_changed_and_leads_nowhere_else() -> None:
    request = await Turn().request(lambda given: None)
    with pytest.raises(FrozenInstanceError):
        request.agent = None
    with pytest.raises(FrozenInstanceError):
        request.ctx.board = None
    assert set(ContextRequest.__slots__) == {
        *("agent", "ctx", "inputs", "board", "correlation_id", "config"),
    }


async def test_config_and_inputs_reach_the_provider_as_its_own() -> None:
    async def spoils(request: ContextRequest) -> ContextSlice:
        request.inputs[0].payload.clear()
        found, _ = await request.board.query_artifacts()
        found[0].payload.pop("id")
        payload = found[0].payload
        return Slice(items=[{"type": found[0].type, "payload": payload, **request.config}])

    (whole,) = series(1, payload={"id": "0", "n": 1})
    given = artifact("in", payload={"x": 1})
    turn = Turn([whole], inputs=(given,))
    gathered = await turn.gather(spoils, config={"note": "hi"})
    assert given.payload == {"x": 1}
    assert gathered.items[0]["note"] == "hi"
    assert (gathered.items[0].artifact, gathered.items[0].redacted) == ("0", ("id",))


# ------------------------------------------------------------------ failures


async def raises(request: ContextRequest) -> ContextSlice:
    raise LookupError("no such shelf")


async def hangs(request: ContextRequest) -> ContextSlice:
    await asyncio.sleep(60)
    return Slice(items=[])


async def test_the_fallback_is_asked_and_it_is_said() -> None:
    gathered = await Turn(series(2)).gather(raises, fallback=FilteredContextProvider())
    fact = gathered_fact(gathered, {})
    assert (fact.provider, fact.fallback, len(fact.items)) == ("FilteredContextProvider", True, 2)
    assert gathered.failures == (
        ProviderFailed(
            1, "ann", "raises", "LookupError", "no such shelf", "FilteredContextProvider"
        ),
    )
    assert [(call.provider, call.error) for call in fact.calls] == [
        ("raises", "LookupError"),
        ("FilteredContextProvider", ""),
    ]


async def test_without_a_fallback_the_error_says_who_and_what() -> None:
    with pytest.raises(ContextUnavailable) as caught:
        await Turn().gather(raises)
    for named in ("'ann'", "'raises'", "LookupError: no such shelf"):
        assert named in str(caught.value)
    (failed,) = caught.value.failures
    assert (failed.provider, failed.fallback) == ("raises", "")


async def test_both_may_fail() -> None:
    with pytest.raises(ContextUnavailable, match="'raises'.*'hangs'") as caught:
        await Turn().gather(raises, fallback=hangs, timeout=0.01)
    assert [each.fallback for each in caught.value.failures] == ["hangs", ""]


async def test_a_provider_that_takes_too_long_has_failed() -> None:
    gathered = await Turn(series(1)).gather(hangs, fallback=FilteredContextProvider(), timeout=0.01)
    (failed,) = gathered.failures
    assert "'hangs'" in failed.message and "0.01 s" in failed.message
    assert gathered.calls[0].error == "CancelledError"


async def test_a_timeout_of_its_own_is_an_error_as_others() -> None:
    async def times_out(request: ContextRequest) -> ContextSlice:
        raise TimeoutError("shelf is slow")

    with pytest.raises(ContextUnavailable, match="TimeoutError: shelf is slow"):
        await Turn().gather(times_out)


async def test_who_is_cancelled_asks_no_fallback() -> None:
    asked: list[str] = []
    waits = asyncio.Event()

    async def waiting(request: ContextRequest) -> ContextSlice:
        waits.set()
        return await hangs(request)

    async def fallback(request: ContextRequest) -> ContextSlice:
        asked.append("fallback")
        return Slice(items=[])

    task = asyncio.ensure_future(Turn().gather(waiting, fallback=fallback))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not asked


class Model(BaseModel):
    n: int


def loop() -> list[Any]:
    round: list[Any] = []
    round.append(round)
    return round


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "'NoneType'"),
        ([], "'list'"),
        (Slice(items=()), "'tuple'"),
        (Slice(items=[Model(n=1)]), r"'Model'.*items\[0\]"),
        (Slice(items=[{}, {"a": [Model(n=1)]}]), r"'Model'.*items\[1\].a\[0\]"),
        (Slice(items=[{"payload": {"at": datetime(2026, 1, 1, tzinfo=UTC)}}]), "'datetime'"),
        (Slice(items=[{"a": (1,)}]), r"'tuple'.*items\[0\].a"),
        (Slice(items=[{"a": float("nan")}]), r"'float'.*items\[0\].a"),
        (Slice(items=[{"a": "\ud800"}]), r"'str'.*items\[0\].a"),
        (Slice(items=[{1: 2}]), r"items\[0\]"),
        (Slice(items=[{"a": loop()}]), r"items\[0\]"),
        (Slice(items=[], metadata={"at": {1}}), "'set'.*metadata.at"),
        (Slice(items=[], metadata=None), "'NoneType'.*metadata"),
        (Slice(items=[{"artifact_id": 5}]), r"'int'.*`artifact_id`.*items\[0\]"),
        (Slice(items=[{"artifact_id": "made up"}]), "'made up'"),
        (Slice(items=[], inputs=[]), "`inputs`"),
        (Slice(items=[], inputs=[{"payload": "text"}]), "`inputs`"),
        (Slice(items=[], inputs=[{"payload": {}, "artifact_id": "x"}]), "`inputs`"),
    ],
)  # fmt: skip
async def test_what_is_no_slice_is_refused(given: Any, says: str) -> None:
    async def gives(request: ContextRequest) -> ContextSlice:
        return given

    turn = Turn(series(1), inputs=(artifact("in"),))
    with pytest.raises(ContextUnavailable, match=says):
        await turn.gather(gives)
    with pytest.raises(ContextUnavailable, match=says):
        await turn.gather(CompositeProvider(DefaultCorrelationProvider(), gives))


async def test_a_provider_that_is_not_async_is_told_so() -> None:
    with pytest.raises(ContextUnavailable, match="TypeError"):
        await Turn().gather(lambda request: 5)


# ------------------------------------------------------------------ nothing stolen


async def test_what_was_kept_from_another_reader_is_refused() -> None:
    class Keeps:
        """Gives everybody what the first one got."""

        def __init__(self) -> None:
            self.kept: ContextSlice | None = None

        async def __call__(self, request: ContextRequest) -> ContextSlice:
            if self.kept is None:
                self.kept = await FilteredContextProvider()(request)
            return self.kept

    class Shares(Keeps):
        stateless = True  # it is not

    board, provider = [artifact("a", visibility=Private({"eve"}))], Shares()
    assert len((await Turn(board, reader=Reader("eve")).gather(provider)).items) == 1
    with pytest.raises(ContextUnavailable, match="'a'"):
        await Turn(board, reader=Reader("bob")).gather(provider)
    assert not (await Turn(board, reader=Reader("bob")).gather(Keeps())).items
