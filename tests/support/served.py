"""An app behind its HTTP API, called without a socket."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from starlette.datastructures import Headers

from tests.support.folders import as_json, write_folder
from turnloom import Board, Flow, Loom, Principal, artifact_type
from turnloom.server import Identity, Limits, asgi

PATIENCE = 60.0
BASE = "/api/v1"
OUTSIDE = ("/health", "/api/", "/ui", "/docs")

# A person and an agent take turns; the agent knows a secret and a variable that users never see.
CHAT = as_json(
    {
        "orchestrator.yaml": "{initial_agent: Poet, human_in_the_loop: true}",
        "agents.yaml": """
            agents:
              Poet: {system_message: Rhyme about CANARY-prompt., engine: scripted}
            """,
        "context_variables.yaml": """
            definitions:
              mood: {type: string, source: {type: static, value: CANARY-variable}}
            agents: {Poet: {variables: [mood]}}
            """,
        "handoffs.yaml": """
            handoff_rules:
              - {source_agent: Poet, target_agent: user, handoff_type: after_work}
              - {source_agent: user, target_agent: Poet, handoff_type: after_work}
            """,
        "script.yaml": "agents: {Poet: [Roses are red., Violets are blue., That is all.]}",
    }
)

# Ends by itself.
SHORT = as_json(
    {
        "orchestrator.yaml": "{initial_agent: Clerk}",
        "agents.yaml": "agents: {Clerk: {system_message: File it., engine: scripted}}",
        "script.yaml": "agents: {Clerk: [Filed.]}",
    }
)


# Asks the engine of the app.
TALE = as_json(
    {
        "orchestrator.yaml": "{initial_agent: Teller}",
        "agents.yaml": "agents: {Teller: {system_message: Tell a tale.}}",
    }
)


class Sum(BaseModel):
    """Numbers, and their sum."""

    model_config = ConfigDict(frozen=True)
    numbers: list[int] = []
    total: int = 0


async def check(state: Sum) -> dict[str, int]:
    """Change nothing."""
    return {}


async def add(state: Sum) -> dict[str, int]:
    """Add the numbers up."""
    return {"total": sum(state.numbers)}


@artifact_type
class Note(BaseModel):
    """A line on the board."""

    text: str


def person(header: str | None) -> Identity | None:
    """Whose credential it is, as `Bearer acme:ann:user`."""
    words = (header or "").removeprefix("Bearer ").split(":")
    if len(words) != 3:
        return None
    tenant, user, role = words
    return Identity(Principal(tenant, user, role), "test")  # type: ignore[arg-type]


async def authenticate(headers: Headers) -> Identity | None:
    return person(headers.get("authorization"))


class Reply:
    """A response."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        return self.json["code"]


class Frame(BaseModel):
    """A server-sent event."""

    event: str = "message"
    id: str | None = None
    data: Any = None


class Stream:
    """An open stream: frames as they arrive."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = self.all = b""
        self.is_over = False
        self.reads = asyncio.Event()
        self.reads.set()
        self.left = asyncio.Event()
        self._changed = asyncio.Event()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.raw += message.get("body", b"")
            self.all += message.get("body", b"")
            self.is_over = not message.get("more_body", False)
        self._changed.set()

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> Frame | None:
        """The next frame; None at the end."""
        async with asyncio.timeout(PATIENCE):
            while b"\n\n" not in self.raw:
                if self.is_over:
                    return None
                self._changed.clear()
                await self._changed.wait()
        block, _, self.raw = self.raw.partition(b"\n\n")
        fields: dict[str, Any] = {}
        for line in block.decode().split("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        if "data" not in fields:
            return await self.next()
        return Frame(**{**fields, "data": json.loads(fields["data"])})

    async def next_status(self) -> int:
        """The status of the response."""
        async with asyncio.timeout(PATIENCE):
            while not self.status:
                self._changed.clear()
                await self._changed.wait()
        return self.status

    async def rest(self) -> list[Frame]:
        """All frames that follow."""
        frames: list[Frame] = []
        while (frame := await self.next()) is not None:
            frames.append(frame)
        return frames


class Client:
    """Calls an ASGI app as one person; the API is mounted at `root`."""

    def __init__(self, api: Any, who: str | None = None, *, root: str = "") -> None:
        self.api = api
        self._root = root
        self._headers = {"host": "localhost:8321"}
        if who is not None:
            self._headers["authorization"] = f"Bearer {who}"

    def scope(self, method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
        path, _, query = path.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (name.lower().encode(), value.encode())
                for name, value in {**self._headers, **headers}.items()
                if value
            ],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8321),
        }

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        pieces: list[bytes] | None = None,
        client: str = "127.0.0.1",
    ) -> Reply:
        """The response to a request; `pieces` is a body as it arrives."""
        sent = dict(headers or {})
        if pieces is None:
            pieces = [] if body is None else [json.dumps(body).encode()]
            if body is not None:
                sent.setdefault("content-type", "application/json")
        place = path if path.startswith(OUTSIDE) else BASE + path
        scope = self.scope(method, self._root + place, sent)
        scope["client"] = (client, 50_000)
        waiting = [*pieces] or [b""]
        status, found, parts = 0, dict[str, str](), list[bytes]()

        async def receive() -> Any:
            if not waiting:
                await asyncio.get_running_loop().create_future()
            piece = waiting.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

        async def send(message: Any) -> None:
            nonlocal status, found
            if message["type"] == "http.response.start":
                status = message["status"]
                found = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                parts.append(message.get("body", b""))

        async with asyncio.timeout(PATIENCE):
            await self.api(scope, receive, send)
        return Reply(status, found, b"".join(parts))

    async def get(self, path: str, **more: Any) -> Reply:
        return await self.call("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Reply:
        return await self.call("POST", path, {} if body is None else body, **more)

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Stream]:
        """An open stream; leaving closes it."""
        stream = Stream()
        sent = {"accept": "text/event-stream", **(headers or {})}
        scope = self.scope("GET", self._root + BASE + path, sent)
        task = asyncio.create_task(self.api(scope, stream.receive, stream.send))
        try:
            yield stream
        finally:
            stream.reads.set()
            stream.left.set()
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait({task})
            task.result()


class Site:
    """An app, its API, and clients."""

    def __init__(self, app: Loom, api: Any) -> None:
        self.app = app
        self.api = api

    def client(self, who: str | None = None) -> Client:
        return Client(self.api, who)


@asynccontextmanager
async def site(
    where: Path, *, keys: bool = False, limits: Limits | None = None, **settings: Any
) -> AsyncGenerator[Site]:
    """An app with workflows of all forms, served; with `keys`, callers show who they are."""
    async with Loom(**{"store": "memory", **settings}) as app:
        write_folder(where / "served", CHAT, "Chat")
        write_folder(where / "served", SHORT, "Short")
        write_folder(where / "served", TALE, "Tale")
        app.workflows.add(where / "served")
        app.register_flow(Flow("adding", Sum).start_with(check).finally_(add))
        for tenant in ("local", "acme", "other"):
            declare_board(app, tenant)
        api = asgi(app, authenticate=authenticate if keys else None, limits=limits)
        yield Site(app, api)
        await api.state.served.jobs.stop()


def declare_board(app: Loom, tenant: str) -> Board:
    """A board without agents."""
    board = app.board(f"notes-{tenant}", app_id=tenant)
    board.register(Note)
    return board


async def started(client: Client, workflow: str = "Chat") -> str:
    """The id of a run that was started."""
    reply = await client.post("/runs", {"workflow": workflow})
    assert reply.status == 201, reply.body
    return reply.json["run"]


async def asked(
    client: Client, run: str, number: int = 1, *, developer: Client | None = None
) -> dict[str, Any]:
    """The question that a client is asked by a run, once it waits for its answer."""
    async with asyncio.timeout(PATIENCE):
        async with (developer or client).stream(f"/runs/{run}/events") as stream:
            count = 0
            while (frame := await stream.next()) is not None:
                count += frame.event == "message" and frame.data["event"]["kind"] == "run.paused"
                if count == number:
                    break
    found = (await client.get(f"/runs/{run}/questions")).json["items"]
    return found[0]
