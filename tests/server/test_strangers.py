"""What belongs to others: random requests over every route and stream find none of it."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random  # noqa: TID251 - seeded
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.support.served import Client, Site, asked, site, started
from turnloom.server import Limits, openapi

pytestmark = pytest.mark.doors

# Seconds to listen to a stream.
LISTEN = 0.3

REQUESTS = int(os.environ.get("TURNLOOM_FUZZ", "1000"))

# What only the owner sees, and what no user sees: prompts and variables. No request has it, so that
# every response with it is a leak.
SECRET, HIDDEN = "CANARY-of-acme", "CANARY-"
OWNER = f"{SECRET}-carl"

STRANGERS = ("other:eve:user", "other:dev:developer", "other:root:admin", "acme:bob:user")
PLENTY = Limits(requests_per_minute=10**9, starts_per_minute=10**9, failures_per_minute=10**9)


class Furniture(NamedTuple):
    """Things of tenant acme: names that strangers try, and texts that they never send or see."""

    known: dict[str, list[str]]
    unsent: list[bytes]


async def furnished(at: Site) -> Furniture:
    """Things of tenant acme with canaries in them."""
    dev, ann = at.client("acme:dev:developer"), at.client("acme:ann:user")
    runs = [await started(ann), await started(dev), await started(ann, "Short")]
    question = await asked(ann, runs[0], developer=dev)
    answer = {"question": question["id"], "value": f"{SECRET} answer"}
    assert (await ann.post(f"/runs/{runs[0]}/answers", answer)).status == 200
    await asked(ann, runs[0], 2, developer=dev)
    feedback = {"name": "quality", "label": "bad", "comment": SECRET}
    assert (await ann.post(f"/runs/{runs[0]}/feedback", feedback)).status == 201
    sent = [await note(dev, "note-acme"), await job(dev, runs[2]), await key(at, "ann")]
    unsent = [await note(dev, "note-of-carl"), await job(dev, runs[2]), await key(at, OWNER)]
    carl = at.client(f"acme:{OWNER}:user")
    unsent += [await started(carl), await started(carl, "Short")]
    for path in (f"/runs/{runs[0]}/events", "/board/artifacts", f"/runs/{runs[0]}/feedback"):
        assert SECRET.encode() in (await dev.get(path)).body
    assert HIDDEN.encode() in (await dev.get(f"/runs/{runs[0]}/turns/1")).body
    admin, lists = at.client("acme:root:admin"), ("/board/artifacts", "/jobs", "/keys", "/runs")
    seen = b"".join([(await admin.get(path)).body for path in lists])
    assert all(each.encode() in seen for each in (*unsent, OWNER))
    cursor = (await dev.get("/runs?limit=1")).json["next"]
    while cursor in unsent:
        cursor = (await dev.get(f"/runs?limit=1&cursor={cursor}")).json["next"]
    known = {
        "run": [*runs, "none", "../runs", "%00", "a b"],
        "id": [*sent, "none"],
        "name": ["Chat", "Short", "adding", "mood", "notes-acme", "none"],
        "turn": ["1", "2", "0"],
        "seq": ["4", "5", "99"],
        "question": [question["id"]],
        "cursor": [cursor, *sent, "5"],
        "text": ["CANARY", "answer", "Roses are red"],
        "find": ["CANARY", "acme", "chat", "short"],
        "workflow": ["Chat", "Short"],
        "board": ["notes-acme", "notes-other"],
    }
    return Furniture(known, [each.encode() for each in (SECRET, *unsent)])


async def note(client: Client, id: str) -> str:
    """The id of an artifact that one agent may see."""
    hidden = {"kind": "private", "agents": ["Poet"]}
    body = {"board": "notes-acme", "type": "Note", "payload": {"text": SECRET}, "id": id}
    assert (await client.post("/board/artifacts", {**body, "visibility": hidden})).status == 201
    return id


async def job(client: Client, run: str) -> str:
    """The id of a job."""
    return (await client.post("/jobs/backtest", {"workflow": "Short", "runs": [run]})).json["id"]


async def key(at: Site, user: str) -> str:
    """The id of a key."""
    return (await at.app.keys.create(user, name=SECRET, app_id="acme")).key.id


class Requests:
    """Random requests of the operations of the document, with names that exist."""

    def __init__(self, known: dict[str, list[str]], seed: int) -> None:
        self._chance = Random(seed)
        self._known = known
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in openapi()["paths"].items()
            for method, operation in methods.items()
        ]

    def value(self, name: str) -> str:
        return self._chance.choice(self._known.get(name) or ["CANARY", "1", "x", ""])

    def next(self) -> tuple[str, str, Any, bool]:
        """A method, a path, a body, and whether it opens a stream."""
        method, path, operation = self._chance.choice(self._operations)
        query: list[str] = []
        for each in operation.get("parameters", ()):
            name = each["name"]
            if each["in"] == "path":
                path = path.replace(f"{{{name}}}", quote(self.value(name), safe=""))
            elif each["in"] == "query" and (each.get("required") or self._chance.random() < 0.3):
                query.append(f"{name}={quote(self.value(name))}")
        body = self._body(operation) if method == "POST" else None
        content = operation["responses"].get("200", {}).get("content", {})
        streams = "text/event-stream" in content
        is_endless = streams and len(content) == 1
        url = f"{path}?{'&'.join(query)}" if query else path
        return method, url, body, is_endless or (streams and self._chance.random() < 0.5)

    def _body(self, operation: Any) -> dict[str, Any]:
        names = ("workflow", "question", "text", "type", "payload", "board", "runs", "at", "name")
        values = {
            "payload": {"text": "x"},
            "runs": [self.value("run")],
            "at": 3,
            "type": "Note",
            "value": "x",
            "user": "ann",
            "query": "CANARY",
            "last": 5,
        }
        return {
            name: values.get(name, self.value(name))
            for name in (*names, "value", "user", "query", "last")
            if self._chance.random() < 0.35
        }


async def ask(
    client: Client, method: str, path: str, body: Any, streams: bool
) -> tuple[int, bytes]:
    """The status of a response and all of its bytes; of a stream, those up to its first pause."""
    if not streams:
        reply = await client.call(method, path, body)
        return reply.status, reply.body + str(reply.headers).encode()
    async with client.stream(path.removeprefix("/api/v1")) as stream:
        status = await stream.next_status()
        if status == 200:
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTEN):
                    await stream.next()
        return status, stream.all


@pytest.mark.timeout(7200)
async def test_strangers_find_nothing(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True, limits=PLENTY) as at:
        known, unsent = await furnished(at)
        requests = Requests(known, seed=7)
        found: dict[str, Sequence[int]] = {}
        for number in range(REQUESTS):
            who = STRANGERS[number % len(STRANGERS)]
            method, path, body, streams = requests.next()
            status, told = await ask(at.client(who), method, path, body, streams)
            found[path.partition("?")[0]] = (status,)
            assert status < 500, (who, method, path, body, told)
            of_own = b"CANARY-prompt" in told or b"CANARY-variable" in told
            assert not [each for each in unsent if each in told], (who, method, path, body, told)
            is_user = who.endswith(":user")
            assert not (is_user and of_own), (who, method, path, body)
        assert len(found) > 30


@pytest.mark.timeout(7200)
async def test_an_owner_with_the_role_user_sees_the_chat_alone(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True, limits=PLENTY) as at:
        known, _ = await furnished(at)
        requests = Requests(known, seed=8)
        for _ in range(REQUESTS // 4):
            method, path, body, streams = requests.next()
            status, told = await ask(at.client("acme:ann:user"), method, path, body, streams)
            assert status < 500, (method, path, body, told)
            assert b"CANARY-prompt" not in told and b"CANARY-variable" not in told, path
