"""The API mounted in an app of a user."""

import logging
from pathlib import Path

import pytest
from fastapi import FastAPI

from tests.support.served import Client, asked, site, started
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.server import asgi

ROOT = "/agents"


async def test_an_app_is_mounted_in_another_one(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        outer = FastAPI()
        outer.mount(ROOT, at.api)
        client = Client(outer, root=ROOT)
        assert (await client.get("/health/ready")).status == 503
        await at.app.serving.pick_up()
        reply = await client.post("/runs", {"workflow": "Short"})
        run = reply.json["run"]
        assert (reply.status, reply.headers["location"]) == (201, f"{ROOT}/api/v1/runs/{run}")
        async with client.stream(f"/runs/{run}/events") as stream:
            frames = await stream.rest()
        assert (frames[0].id, frames[-1].event) == ("1", "end")
        page = await client.get(f"/runs/{run}/page")
        assert page.status == 200 and "sandbox" in page.headers["content-security-policy"]
        assert (await client.get("/ui")).body.startswith(b"<!doctype html>")
        assert (await client.get("/docs")).status == 200
        document = (await client.get("/openapi.json")).json
        assert document["servers"] == [{"url": ROOT}]
        assert (await client.get("/health/live")).status == 200
        assert (await client.get("/health/ready")).status == 200
        assert (await client.get("/runs", client="10.0.0.7")).status == 403
        for path in ("/me", "/health/live", "/docs"):
            foreign = await client.get(path, headers={"host": "evil.example"})
            assert foreign.status == (421 if path == "/me" else 200), path
        assert (await Client(outer).get("/me")).status == 404  # the user's own part of the site


async def test_a_mounted_app_has_the_names_that_it_is_given(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        outer = FastAPI()
        outer.mount(ROOT, asgi(at.app, hosts=["agents.example"]))
        client = Client(outer, root=ROOT)
        for host, status in (("evil.example", 421), ("agents.example", 200), ("", 421)):
            for path in ("/health/live", "/docs"):
                assert (await client.get(path, headers={"host": host})).status == status


@pytest.mark.parametrize("is_kept", [True, False])
async def test_an_audit_trail_that_is_not_kept_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_kept: bool
) -> None:
    caplog.set_level(logging.WARNING, "turnloom.server")
    store = MemoryStore(codec())
    if not is_kept:
        store.audit = None  # type: ignore[assignment]
    async with site(tmp_path, store=store) as at:
        outer = FastAPI()
        outer.mount(ROOT, at.api)
        client = Client(outer, root=ROOT)
        await asked(client, await started(client))
        assert (await client.get("/runs")).status == 200
    said = [each for each in caplog.records if "audit" in each.message]
    assert [each.levelname for each in said] == ([] if is_kept else ["WARNING"])
