"""Jobs outlive their server; what was running then is interrupted."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.served import PATIENCE, site, started
from tests.support.world import Refitted
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.server import asgi
from turnloom.server.jobs import KEPT

TENANT = "local"


class Blocked:
    """Work that says a number for each run, and waits at the last one."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, run: str) -> dict[str, Any]:
        if run == "last":
            self.reached.set()
            await self.go.wait()
        return {"run": run, "status": "finished", "problem": None}


async def test_a_job_is_there_after_its_server(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with site(tmp_path, store=store) as at:
        client = at.client()
        run = await started(client, "Short")
        await at.app.handle(run).finished()
        body = {"workflow": "Short", "runs": [run]}
        job = (await client.post("/jobs/backtest", body)).json["id"]
        await at.api.state.served.jobs.ended(TENANT, job)
        before = (await client.get(f"/jobs/{job}")).json
        result = (await client.get(f"/jobs/{job}/result")).json
    async with site(tmp_path, store=store) as at:
        client = at.client()
        assert (await client.get(f"/jobs/{job}")).json == before
        assert before["status"] == "done" and (before["done"], before["total"]) == (1, 1)
        assert (await client.get(f"/jobs/{job}/result")).json == result
        assert [each["run"] for each in result["runs"]] == [run]
        assert (await client.post(f"/jobs/{job}/cancel")).json["status"] == "done"
        assert [each["id"] for each in (await client.get("/jobs")).json["items"]] == [job]


async def test_a_stopping_server_interrupts_its_jobs(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client, work, jobs = at.client(), Blocked(), at.api.state.served.jobs
        job = await jobs.start(TENANT, "retry", "local", ["first", "last"], work=work)
        await work.reached.wait()
        running = (await client.get(f"/jobs/{job.id}")).json
        assert (running["status"], running["done"]) == ("running", 1)
        await jobs.stop()
        shown = (await client.get(f"/jobs/{job.id}")).json
        assert (shown["status"], shown["done"]) == ("interrupted", 1)
        found = (await client.get(f"/jobs/{job.id}/result")).json["runs"]
        assert [each["run"] for each in found] == ["first"]


async def test_a_job_of_a_killed_server_is_interrupted(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client, work, jobs = at.client(), Blocked(), at.api.state.served.jobs
        job = await jobs.start(TENANT, "retry", "local", ["last"], work=work)
        stored, serving = await at.app.serving.jobs.lookup(TENANT, job.id), at.app.serving
        assert stored is not None
        old = serving.now() - timedelta(hours=1)
        silent = type(stored)("old", "retry", "local", 2, old, old)
        await serving.jobs.add(TENANT, silent)
        shown = (await client.get("/jobs/old")).json
        assert (shown["status"], shown["seconds"]) == ("interrupted", 0)
        assert (await client.get(f"/jobs/{job.id}")).json["status"] == "running"
        assert (await client.post("/jobs/old/cancel")).json["status"] == "cancelled"


async def test_another_server_cancels_a_job(tmp_path: Path) -> None:
    async with site(tmp_path) as at, asyncio.timeout(PATIENCE):
        work, jobs = Blocked(), at.api.state.served.jobs
        job = await jobs.start(TENANT, "retry", "local", ["last", "more"], work=work)
        await work.reached.wait()
        other = type(at)(at.app, asgi(at.app)).client()
        assert (await other.post(f"/jobs/{job.id}/cancel")).json["status"] == "cancelled"
        work.go.set()
        await jobs.ended(TENANT, job.id)
        shown = (await at.client().get(f"/jobs/{job.id}")).json
        assert (shown["status"], shown["done"]) == ("cancelled", 0)


async def test_jobs_come_in_pages_and_the_latest_are_kept(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        client, jobs = at.client(), at.api.state.served.jobs
        for _ in range(KEPT + 3):
            job = await jobs.start(TENANT, "retry", "local", ["first"], work=Blocked())
            await jobs.ended(TENANT, job.id)
        first = (await client.get("/jobs?limit=60")).json
        rest = (await client.get(f"/jobs?limit=60&cursor={first['next']}")).json
        ids = [each["id"] for each in (*first["items"], *rest["items"])]
        assert len({*ids}) == len(ids) == KEPT and ids[0] == job.id and rest["next"] is None


async def test_a_store_without_jobs_refuses_them(tmp_path: Path) -> None:
    store = Refitted(MemoryStore(codec()), jobs=None)
    async with site(tmp_path, store=store) as at:
        client = at.client()
        run = await started(client, "Short")
        await at.app.handle(run).finished()
        for path in ("/jobs", "/jobs/x"):
            refused = await client.get(path)
            assert (refused.status, refused.code) == (400, "TURNLOOM-USAGE"), path
        begun = await client.post("/jobs/backtest", {"workflow": "Short", "runs": [run]})
        assert (begun.status, begun.code) == (400, "TURNLOOM-USAGE")
