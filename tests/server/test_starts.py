"""Starts with an `Idempotency-Key`: one run per key, for one input."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tests.support.served import Reply, site
from turnloom import Flow
from turnloom.server import Limits

ANN, BOB, DEV = "acme:ann:user", "acme:bob:user", "acme:dev:developer"


class Part(BaseModel):
    """A part of a drawing; its default is drawn anew each time."""

    model_config = ConfigDict(frozen=True)
    size: int = 0
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)  # noqa: TID251 - as users do


class Drawing(BaseModel):
    """A state with defaults that differ from start to start."""

    model_config = ConfigDict(frozen=True)
    name: str = ""
    number: int = 1
    parts: list[Part] = []
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)  # noqa: TID251 - as users do


async def keep(state: Drawing) -> dict[str, Any]:
    """Change nothing."""
    return {}


async def test_a_start_is_made_once_per_key(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        ann, bob = at.client(ANN), at.client(BOB)
        key = {"Idempotency-Key": "order 7"}
        first = await ann.post("/runs", {"workflow": "Short"}, headers=key)
        again = await ann.post("/runs", {"workflow": "Short"}, headers=key)
        assert first.status == again.status == 201 and first.json["run"] == again.json["run"]
        other = await ann.post("/runs", {"workflow": "Chat"}, headers=key)
        assert (other.status, other.code) == (409, "TURNLOOM-CONFLICT")
        theirs = await bob.post("/runs", {"workflow": "Short"}, headers=key)
        assert theirs.json["run"] != first.json["run"]
        assert len((await at.client(DEV).get("/runs")).json["items"]) == 2


async def test_a_repeated_start_does_not_count(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True, limits=Limits(starts_per_minute=2)) as at:
        ann, body = at.client(ANN), {"workflow": "Short"}
        keys = [{"Idempotency-Key": f"order {n}"} for n in (1, 1, 1, 2, 2, 1, 3)]
        replies = [await ann.post("/runs", body, headers=key) for key in keys]
        assert [each.status for each in replies] == [201] * 6 + [429]
        assert len({each.json["run"] for each in replies[:-1]}) == 2
        assert (await ann.post("/runs", {"workflow": "Chat"}, headers=keys[0])).status == 409


async def test_a_key_of_another_start_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        at.app.register_flow(Flow("drawing", Drawing).start_with(keep).finally_(keep, name="end"))
        ann, key = at.client(ANN), {"Idempotency-Key": "order 8"}

        async def start(input: Any, workflow: str = "drawing") -> Reply:
            return await ann.post("/runs", {"workflow": workflow, "input": input}, headers=key)

        first = await start({"name": "Ann", "parts": [{"size": 1}]})
        assert first.status == 201
        for other in ({"name": "Bob"}, {"name": "Ann"}, {}, None, {"name": "Ann", "number": 1}):
            refused = await start(other)
            assert (refused.status, refused.code) == (409, "TURNLOOM-CONFLICT"), other
        assert (await start({"numbers": [1]}, "adding")).status == 409
        again = await start({"parts": [{"size": 1}], "name": "Ann"})
        assert (again.status, again.json["run"]) == (201, first.json["run"])
        assert len((await at.client(DEV).get("/runs")).json["items"]) == 1


async def test_concurrent_starts_with_one_key_are_one_run(tmp_path: Path) -> None:
    async with site(tmp_path, store=tmp_path / "runs.db") as at:
        client, key = at.client(), {"Idempotency-Key": "order 9"}
        bodies = [{"workflow": "adding", "input": {"numbers": [each % 2]}} for each in range(20)]
        found = await asyncio.gather(*(client.post("/runs", each, headers=key) for each in bodies))
        assert sorted(each.status for each in found) == [201] * 10 + [409] * 10
        assert len({each.json["run"] for each in found if each.status == 201}) == 1
        assert len((await client.get("/runs")).json["items"]) == 1
