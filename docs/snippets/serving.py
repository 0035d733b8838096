"""Serve an app in this program, and converse with a workflow over HTTP."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import uvicorn

from turnloom import Loom
from turnloom.server import asgi


def ask(url: str, body: Any = None) -> Any:
    """The answer to a request."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"})
    with urlopen(request) as response:
        return json.load(response)


def follow(url: str, after: int = 0) -> Iterator[dict[str, Any]]:
    """The events of a stream after a position."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with urlopen(Request(url, headers=headers)) as response:
        is_event = False
        for line in response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            is_event = (is_event or name == "id") and name != ""
            if name == "data" and is_event:
                yield json.loads(value)["event"]


def until(kind: str, url: str, after: int = 0) -> int:
    """Print what is said until an event of a kind; its position."""
    for event in follow(url, after):
        if event["kind"] == "agent.text":
            print(f"{event['data']['agent']}: {event['data']['text']}")
        if event["kind"] == kind:
            return event["seq"]
    raise SystemExit("The run has ended.")


def converse(api: str) -> None:
    """Start a run, answer its question, and explain its turn."""
    run = ask(f"{api}/runs", {"workflow": "Triage"})["run"]
    position = until("run.paused", f"{api}/runs/{run}/events")
    question = ask(f"{api}/questions")["items"][0]["question"]
    print(f"Question: {question['prompt']}")
    said = {"question": question["id"], "value": "The printer on the second floor."}
    print("Answer:", ask(f"{api}/runs/{run}/answers", said)["delivery"])
    until("run.paused", f"{api}/runs/{run}/events", after=position)
    turn = ask(f"{api}/runs/{run}/turns/1")
    print(f"Turn 1 saw {len(turn['segments'])} segments, {turn['tokens']} tokens.")


async def main() -> None:
    async with Loom(store="memory") as app:
        app.workflows.add("docs/snippets/Triage")
        await app.serving.pick_up()
        server = uvicorn.Server(uvicorn.Config(asgi(app), log_level="error"))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            host, port = listener.getsockname()
            await asyncio.to_thread(converse, f"http://{host}:{port}/api/v1")
            server.should_exit = True
            await serving


asyncio.run(main())
