"""Streams: positions, text in progress, several runs, slow clients, the end of a server."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.served import PATIENCE, Client, Frame, asked, site, started
from turnloom.agents.spec import Answer, Task
from turnloom.server import Limits
from turnloom.testing import FakeClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def positions(frames: list[Frame]) -> list[int]:
    return [int(frame.id or 0) for frame in frames if frame.event == "message"]


async def test_a_stream_begins_anywhere_and_repeats_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        run = await started(client, "Short")
        async with client.stream(f"/runs/{run}/events") as stream:
            whole = await stream.rest()
        assert (
            stream.headers["x-accel-buffering"] == "no" and "content-length" not in stream.headers
        )
        events = [frame for frame in whole[:-1] if "event" in frame.data]  # not the text meanwhile
        assert positions(whole) == [*range(1, len(events) + 1)] and whole[-1].event == "end"
        listed = (await client.get(f"/runs/{run}/events")).json["items"]
        assert [frame.data["event"] for frame in events] == listed
        for headers, query in (({"Last-Event-ID": "4"}, ""), ({}, "?after=4")):
            async with client.stream(f"/runs/{run}/events{query}", headers) as stream:
                assert positions(await stream.rest()) == positions(whole)[4:]
        last = {"Last-Event-ID": str(len(listed))}
        async with client.stream(f"/runs/{run}/events", last) as stream:
            assert await stream.rest() == [] and stream.status == 204
        for wrong in ("x", "-1", "9" * 40):
            async with client.stream(f"/runs/{run}/events", {"Last-Event-ID": wrong}) as stream:
                await stream.next_status()
                assert stream.status == 400


async def test_a_stream_is_live_up_to_the_end(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        run = await started(client)
        question = await asked(client, run)
        async with client.stream(f"/runs/{run}/events") as stream:
            before = [await stream.next() for _ in range(3)]
            assert all(before)
            await client.post(f"/runs/{run}/answers", {"question": question["id"], "value": "x"})
            await asked(client, run, 2)
            await client.post(f"/runs/{run}/cancel")
            rest = await stream.rest()
        assert rest[-1].event == "end"
        assert rest[-2].data["event"]["kind"] == "run.cancelled"


class SlowEngine:
    """Says some words, waits to be told to go on, then says the rest; the first try may fail."""

    def __init__(self) -> None:
        self.said = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, task: Task) -> Answer:
        task.say("Once upon ")
        self.said.set()
        await self.go.wait()
        task.say("a time.")
        return Answer("Once upon a time.")


async def test_text_in_progress_comes_once_after_a_reconnect(tmp_path: Path) -> None:
    engine = SlowEngine()
    async with site(tmp_path, engine=engine) as at:
        client = at.client()
        run = await started(client, "Tale")
        await engine.said.wait()
        async with client.stream(f"/runs/{run}/events") as stream:
            frames = await until(stream, "reset")
            position = positions(frames)[-1]
            first = frames[-1]
        async with client.stream(f"/runs/{run}/events", {"Last-Event-ID": str(position)}) as stream:
            again = await until(stream, "reset")
            engine.go.set()
            rest = await stream.rest()
        assert positions(again) == [] and again[-1].data == first.data
        text = {"run": run, "turn": 1, "agent": "Teller", "call": 1, "attempt": 1}
        assert first.data == {**text, "offset": 0, "text": "Once upon "} and first.id is None
        deltas = [frame for frame in rest if frame.event == "delta"]
        assert [frame.data for frame in deltas] == [{**text, "offset": 10, "text": "a time."}]
        assert all(frame.id is None for frame in deltas)


async def until(stream: Any, event: str) -> list[Frame]:
    """The frames up to one of this kind."""
    frames: list[Frame] = []
    while not frames or frames[-1].event != event:
        frames.append(await stream.next())
    return frames


async def test_one_stream_follows_several_runs(tmp_path: Path) -> None:
    async with site(tmp_path, limits=Limits(runs_per_stream=3)) as at:
        client = at.client()
        runs = [await started(client, "Short") for _ in range(3)]
        query = "&".join(f"run={run}" for run in runs)
        async with client.stream(f"/events?{query}") as stream:
            frames = [frame for frame in await stream.rest() if frame.event == "message"]
        assert {frame.data["run"] for frame in frames} == {*runs}
        half = len(frames) // 2
        async with client.stream(f"/events?{query}", {"Last-Event-ID": frames[half].id}) as stream:
            rest = [frame for frame in await stream.rest() if frame.event == "message"]
        seen = {(each.data["run"], each.data["event"]["seq"]) for each in frames[: half + 1]}
        then = {(each.data["run"], each.data["event"]["seq"]) for each in rest}
        assert not seen & then and len(seen | then) == len(frames)
        async with client.stream(f"/events?{query}&run={runs[0]}=2&run=none") as stream:
            await stream.next_status()
            assert stream.status in (400, 404)


async def test_a_slow_client_is_cut_off_and_comes_back(tmp_path: Path) -> None:
    async with site(tmp_path, limits=Limits(slow_seconds=1e-9)) as at:
        client = at.client()
        run = await started(client)
        question = await asked(client, run)
        async with client.stream(f"/runs/{run}/events") as stream:
            await stream.next()
            stream.reads.clear()
            await client.post(f"/runs/{run}/answers", {"question": question["id"], "value": "x"})
            await asked(client, run, 2)  # the run goes on without this client
            stream.reads.set()
            frames = await stream.rest()
        assert frames[-1].event == "cut" and frames[-1].data["reason"] == "slow"
        last = max(positions(frames), default=1)
        async with client.stream(f"/runs/{run}/events", {"Last-Event-ID": str(last)}) as stream:
            await client.post(f"/runs/{run}/cancel")
            assert positions(await stream.rest())[:1] == [last + 1]


async def test_a_client_that_does_not_read_is_left(tmp_path: Path) -> None:
    async with site(tmp_path, limits=Limits(stalled_seconds=0.01)) as at:
        client = at.client()
        run = await started(client)
        async with client.stream(f"/runs/{run}/events") as stream:
            await stream.next()
            stream.reads.clear()
            async with asyncio.timeout(PATIENCE):
                await client.post(f"/runs/{run}/cancel")
                while len(at.api.state.served.streams):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)


async def test_a_stopping_server_ends_its_streams(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client = at.client()
        run = await started(client)
        await asked(client, run)
        async with client.stream(f"/runs/{run}/events") as stream:
            await stream.next()
            at.api.state.served.streams.stop()
            frames = await stream.rest()
        assert frames[-1].event == "cut" and frames[-1].data["reason"] == "stopping"


async def test_open_streams_are_limited_per_key(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True, limits=Limits(streams=2)) as at:
        dev = at.client("acme:dev:developer")
        run = await started(dev)
        path = f"/runs/{run}/events"
        async with dev.stream(path) as one, dev.stream(path) as two:
            assert await one.next() and await two.next()
            async with dev.stream(path) as three:
                await three.next_status()
                assert three.status == 429 and three.headers["retry-after"]
            async with at.client("acme:eve:developer").stream(path) as theirs:
                assert await theirs.next()
        async with dev.stream(path) as again:
            assert await again.next()


async def test_silence_is_filled_with_comments(tmp_path: Path) -> None:
    async with site(tmp_path, limits=Limits(ping_seconds=0.005)) as at:
        client: Client = at.client()
        run = await started(client)
        await asked(client, run)
        async with client.stream(f"/runs/{run}/events") as stream:
            async with asyncio.timeout(PATIENCE):
                while b": ping" not in stream.raw:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)


async def test_a_board_is_followed_from_a_position(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        ann, dev = at.client("acme:ann:user"), at.client("acme:dev:developer")

        async def publish(id: str, **more: Any) -> None:
            body = {"board": "notes-acme", "type": "Note", "payload": {"text": id}, "id": id}
            assert (await dev.post("/board/artifacts", body | more)).status == 201

        await publish("a")
        await publish("hidden", visibility={"kind": "private", "agents": ["x"]})
        async with ann.stream("/board/stream") as stream:
            first = await stream.next()
            await publish("b")
            second = await stream.next()
        assert first is not None and second is not None
        assert [first.data["id"], second.data["id"]] == ["a", "b"]
        await publish("c")
        for position, expected in ((first.id, ["b", "c"]), (second.id, ["c"])):
            async with ann.stream("/board/stream", {"Last-Event-ID": position or ""}) as stream:
                seen = [await stream.next() for _ in expected]
            assert [each and each.data["id"] for each in seen] == expected
        async with dev.stream('/board/stream?where=["text","eq","hidden"]') as stream:
            only = await stream.next()
            assert only is not None and only.data["id"] == "hidden"
        async with ann.stream("/board/stream", {"Last-Event-ID": "x"}) as stream:
            assert await stream.next_status() == 400


async def test_what_becomes_visible_later_comes_then(tmp_path: Path) -> None:
    clock = FakeClock(NOON)
    async with site(tmp_path, keys=True, clock=clock) as at, asyncio.timeout(PATIENCE):
        ann, dev = at.client("acme:ann:user"), at.client("acme:dev:developer")

        async def publish(id: str, seconds: float = 0) -> None:
            body = {"board": "notes-acme", "type": "Note", "payload": {"text": id}, "id": id}
            if seconds:
                opens = (clock.now() + timedelta(seconds=seconds)).isoformat()
                body["visibility"] = {"kind": "after", "at": opens, "then": {"kind": "public"}}
            assert (await dev.post("/board/artifacts", body)).status == 201

        async def take(stream: Any, count: int) -> list[Frame]:
            return [await stream.next() for _ in range(count)]

        await publish("late", 30)
        await publish("later", 60)
        await publish("as late", 60)
        await publish("now")
        async with ann.stream("/board/stream") as stream:
            (first,) = await take(stream, 1)
            clock.advance(timedelta(seconds=30))
            (second,) = await take(stream, 1)
            clock.advance(timedelta(seconds=30))
            both = await take(stream, 2)
            await publish("after")
            (last,) = await take(stream, 1)
        assert [each.data["id"] for each in (first, second)] == ["now", "late"]
        assert {each.data["id"] for each in both} == {"later", "as late"}
        assert last.data["id"] == "after"
        seen, more = [first, second, *both, last], set[str]()
        for number, frame in enumerate(seen):  # nothing is lost or repeated, wherever it broke off
            expected = {each.data["id"] for each in seen[number + 1 :]} | more
            more.add(f"mark {number}")
            async with ann.stream("/board/stream", {"Last-Event-ID": frame.id or ""}) as stream:
                again = await take(stream, len(expected))
                await publish(f"mark {number}")
                (mark,) = await take(stream, 1)
            assert {each.data["id"] for each in again} == expected, number
            assert mark.data["id"] == f"mark {number}"
        async with dev.stream("/board/stream") as stream:
            assert {each.data["id"] for each in await take(stream, 10)} >= {"late", "now", *more}
            await publish("hidden", 3600)  # developers see what is not open yet
            (hidden,) = await take(stream, 1)
        assert hidden.data["id"] == "hidden"


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_a_board_stream_follows_commits(tmp_path: Path, kind: str) -> None:
    store = "memory" if kind == "memory" else tmp_path / "runs.db"
    async with site(tmp_path, store=store, limits=Limits(look_seconds=3600)) as at:
        client = at.client()
        async with client.stream("/board/stream") as stream:
            await stream.next_status()
            for number in range(5):
                note = {"board": "notes-local", "type": "Note", "payload": {"text": str(number)}}
                assert (await client.post("/board/artifacts", note)).status == 201
                frame = await stream.next()
                assert frame is not None and frame.data["payload"] == {"text": str(number)}


async def test_a_list_of_runs_is_followed(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        ann, bob, dev = (
            at.client(f"acme:{who}") for who in ("ann:user", "bob:user", "dev:developer")
        )
        first = await started(ann)
        await asked(ann, first, developer=dev)
        async with ann.stream("/runs?unfinished=true") as stream:
            there = await stream.next()
            assert there is not None and there.data["run"] == first
            await started(bob)
            second = await started(ann)
            moved = [await stream.next()]
            while moved[-1] is not None and moved[-1].data["status"] != "waiting":
                moved.append(await stream.next())
            assert {each.data["run"] for each in moved if each} == {second}
            await ann.post(f"/runs/{first}/cancel")
            left = await stream.next()
            assert left is not None and (left.event, left.data) == ("gone", {"run": first})
        async with ann.stream("/runs?status=odd") as stream:
            await stream.next_status()
            assert stream.status == 400
