"""A program that speaks just enough MCP over stdio to misbehave as it is told in its argument.

The argument is a JSON object: `pages` of tools, `answers` by tool, and what it does besides.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

told: dict[str, Any] = json.loads(sys.argv[1])
pages: list[Any] = told.get("pages", [[]])
answers: dict[str, Any] = told.get("answers", {})
lines: dict[str, str] = told.get("lines", {})
INFO = {"name": "raw", "version": "1"}
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def list_page(cursor: str | None) -> dict[str, Any]:
    page = int(cursor or 0)
    following = {"nextCursor": str(page + 1)} if told.get("endless") or pages[page + 1 :] else {}
    return {"tools": pages[min(page, len(pages) - 1)], **following}


def die() -> None:
    sys.stderr.write("a pain in the diodes\n")
    sys.stderr.flush()
    os._exit(7)


def flood() -> None:
    while True:
        sys.stdout.write("x" * 65536)


def mute() -> None:
    os.close(1)
    time.sleep(60)


# Tools that give a text, or nothing, or do harm.
TOOLS: dict[str, Callable[[], str | None]] = {
    "pid": lambda: str(os.getpid()),
    "environment": lambda: " ".join(os.environ),
    "values": lambda: " ".join(os.environ.values()),
    "child": lambda: str(subprocess.Popen(["sleep", "600"]).pid),
    "hang": lambda: None,
    "deaf": lambda: time.sleep(600),
    "die": die,
    "flood": flood,
    "mute": mute,
}


def call(tool: str) -> dict[str, Any] | None:
    if tool not in TOOLS:
        return answers[tool]
    given = TOOLS[tool]()
    return None if given is None else {"content": [{"type": "text", "text": given}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return GREETING
        case "tools/list":
            return list_page(params.get("cursor"))
        case "tools/call":
            return call(params["name"])
        case _:
            raise KeyError(method)


def serve() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or told.get("silent"):
            continue
        params = message.get("params", {})
        if params.get("name") in lines:
            line = lines[params["name"]].replace("ID", str(message["id"]))
            sys.stdout.buffer.write(line.encode("latin-1") + b"\n")
            sys.stdout.flush()
            continue
        try:
            result = answer(message["method"], params)
        except KeyError as error:
            problem = {"code": told.get("code", -32601), "message": f"What is {error}?"}
            write({"id": message["id"], "error": problem})
        else:
            if result is not None:
                write({"id": message["id"], "result": result})


if __name__ == "__main__":
    print(told.get("stderr", ""), file=sys.stderr, flush=True)
    if "stdout" in told:
        print(told["stdout"], flush=True)
    if "exit" in told:
        sys.exit(told["exit"])
    if told.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    if told.get("stubborn"):
        time.sleep(60)
