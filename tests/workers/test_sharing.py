"""What several workers share: limits, and the artifacts of a board."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.workers.limits import limited_folder
from turnloom import Answer, Batch, Join, Loom, Publication, Task, artifact_type

pytestmark = pytest.mark.doors

Engine = Callable[[Task], Awaitable[Answer]]
WORKERS, LIMIT, COUNT = 3, 2, 6


@artifact_type
class Parcel(BaseModel):
    number: int


@artifact_type
class Stamp(BaseModel):
    number: int


@artifact_type
class Packed(BaseModel):
    numbers: list[int]


@artifact_type
class Posted(BaseModel):
    number: int


class Pairs:
    """Work that ends two at a time: alone, it would wait for ever. `most` were at work at once."""

    def __init__(self) -> None:
        self._barrier = asyncio.Barrier(LIMIT)
        self._working = self.most = 0

    async def work(self) -> None:
        self._working += 1
        self.most = max(self.most, self._working)
        try:
            await self._barrier.wait()
            await asyncio.sleep(0.05)  # one more than allowed could begin meanwhile
        finally:
            self._working -= 1


@asynccontextmanager
async def workers(
    url: str, declare: Callable[[Loom], Any], slots: int = 1, **settings: Any
) -> AsyncGenerator[tuple[Loom, Any]]:
    """A program that drives nothing, and three workers."""
    apps = [Loom(store=url, scheduler="procrastinate", **settings) for _ in range(WORKERS + 1)]
    declared = [declare(app) for app in apps]
    working = [asyncio.ensure_future(app.serving.work(slots)) for app in apps[1:]]
    try:
        yield apps[0], declared[0]
    finally:
        for each in working:
            each.cancel()
        await asyncio.wait(working)
        for app in apps:
            await app.aclose()


async def test_calls_of_a_model_overlap_up_to_their_limit(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker has one slot, so that those at work are of different workers."""
    monkeypatch.chdir(tmp_path)
    limits = f"[limits.models]\nfast = {{ at_once = {LIMIT} }}\n"
    Path("turnloom.toml").write_text(limits)  # noqa: ASYNC240 - nothing else runs yet
    folder, pairs = limited_folder(tmp_path), Pairs()

    async def answer(task: Task) -> Answer:
        await pairs.work()
        return Answer("Done.")

    async with workers(postgres_url, lambda app: None, engine=answer) as (app, _):
        for run in [await app.start(folder) for _ in range(COUNT)]:
            assert (await run.finished()).kind == "run.finished"
    assert pairs.most == LIMIT


async def test_runs_of_a_tenant_overlap_up_to_its_limit(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that waited say so."""
    monkeypatch.chdir(tmp_path)
    limits = f"[limits.tenants]\nlocal = {LIMIT}\n"
    Path("turnloom.toml").write_text(limits)  # noqa: ASYNC240 - nothing else runs yet
    folder, pairs = limited_folder(tmp_path), Pairs()

    async def answer(task: Task) -> Answer:
        await pairs.work()
        return Answer("Done.")

    async with workers(postgres_url, lambda app: None, engine=answer) as (app, _):
        runs = [await app.start(folder) for _ in range(COUNT)]
        kinds = Counter[str]()
        for run in runs:
            assert (await run.finished()).kind == "run.finished"
            kinds.update(each.kind for each in await app.history.events(run.id))
            assert (await app.history.replay(run.id)).divergence is None
    assert pairs.most == LIMIT
    assert kinds["run.limited"] >= COUNT - WORKERS


async def made(board: Any) -> Counter[str]:
    """How many artifacts of each type there are."""
    items, _ = await board.query_artifacts()
    return Counter(item.type.rpartition(".")[2] for item in items)


async def consumptions(app: Loom) -> Counter[tuple[str, str, bool]]:
    """How often each subscription consumed each artifact: where it was collected, and in
    its turn."""
    events = [each for run in await app.runs(1000) for each in await app.history.events(run.run)]
    return Counter(
        (event.data.subscription, artifact, event.data.run != "")
        for event in events
        if event.kind == "artifact.consumed"
        for artifact in event.data.artifacts
    )


async def test_turns_of_an_agent_overlap_up_to_its_concurrency(postgres_url: str) -> None:
    pairs = Pairs()

    async def post(task: Task) -> Answer:
        await pairs.work()
        number = task.inputs[0].payload["number"]
        return Answer(artifacts=(Publication(Posted(number=number)),))

    def declare(app: Loom) -> Any:
        board = app.board("counter")
        board.agent("poster").description("Posts.").consumes(Parcel).publishes(Posted).with_engines(
            post
        ).max_concurrency(LIMIT)
        return board

    async with workers(postgres_url, declare) as (_, board):
        for number in range(COUNT):
            await board.publish(Parcel(number=number))
        await board.run_until_idle(60)
        assert await made(board) == {"Parcel": COUNT, "Posted": COUNT}
    assert pairs.most == LIMIT


async def test_joins_and_batches_take_every_artifact_once(postgres_url: str) -> None:
    """Both halves of a join, and all of a batch, come from different programs."""
    packed, posted = list[list[int]](), list[int]()

    async def pack(task: Task) -> Answer:
        numbers = [each.payload["number"] for each in task.inputs]
        packed.append(numbers)
        return Answer(artifacts=(Publication(Packed(numbers=numbers)),))

    async def post(task: Task) -> Answer:
        (number,) = {each.payload["number"] for each in task.inputs}
        posted.append(number)
        return Answer(artifacts=(Publication(Posted(number=number)),))

    def declare(app: Loom) -> Any:
        board = app.board("office")
        board.agent("packer").description("Packs.").consumes(Parcel, batch=Batch(3)).publishes(
            Packed
        ).with_engines(pack)
        board.agent("poster").description("Posts.").consumes(
            Parcel, Stamp, join=Join("number")
        ).publishes(Posted).with_engines(post)
        return board

    async with (
        workers(postgres_url, declare, slots=4) as (app, board),
        Loom(store=postgres_url, scheduler="procrastinate") as other,
    ):
        elsewhere = declare(other)
        await asyncio.gather(
            *(board.publish(Parcel(number=number)) for number in range(COUNT)),
            *(elsewhere.publish(Stamp(number=number)) for number in range(COUNT)),
        )
        await board.run_until_idle(60)
        await elsewhere.run_until_idle(60)
        wanted = {"Parcel": COUNT, "Stamp": COUNT, "Posted": COUNT, "Packed": COUNT // 3}
        async with asyncio.timeout(60):
            while await made(board) != wanted:  # noqa: ASYNC110 - workers change it
                await asyncio.sleep(0.05)
        taken = await consumptions(app)
    assert sorted(posted) == [*range(COUNT)]
    assert sorted(number for each in packed for number in each) == [*range(COUNT)]
    assert [len(each) for each in packed] == [3] * (COUNT // 3)
    assert len(taken) == 2 * 3 * COUNT and set(taken.values()) == {1}
