"""A process that has imported Loom and waits: each request forks it, and the fork is `turnloom`.

A request is `{program, words, folder, env}` with four descriptors: standard input, output and
error, and a socket that is told the process id and, in the end, how the process ended.
"""

import gc
import json
import os
import signal
import socket
import sys
from importlib import import_module
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from turnloom.cli.entry import COMMANDS, main

ROOM = 1 << 20
# What a call imports while it works, one or the other.
USED = [
    *(f"turnloom.cli.commands.{name}" for name in COMMANDS),
    *(f"turnloom.adapters.{name}" for name in ("files", "functions", "inline", "memory")),
    *(f"turnloom.adapters.{name}" for name in ("scripted", "sqlite", "system")),
    *("anyio._backends._asyncio", "jsonschema", "turnloom.agents.logic.outputs.schemas"),
]


def await_request(control: socket.socket) -> dict[str, Any]:
    """Serve until the requests end; come back with a request in a fork that is to do it."""
    with DefaultSelector() as selector:
        selector.register(control, EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.data:
                    selector.unregister(key.fileobj)
                    tell_end(key.fd, *key.data)
                    continue
                text, descriptors, _, _ = socket.recv_fds(control, ROOM, 4)
                if not text:
                    sys.exit()
                pid = os.fork()
                if not pid:
                    control.close()
                    take_over(descriptors)
                    return json.loads(text)
                reply = socket.socket(fileno=descriptors.pop())
                for descriptor in descriptors:
                    os.close(descriptor)
                reply.send(f"{pid}".encode())
                selector.register(os.pidfd_open(pid), EVENT_READ, (pid, reply))


def tell_end(descriptor: int, pid: int, reply: socket.socket) -> None:
    os.close(descriptor)
    with reply:
        reply.send(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}".encode())


def take_over(descriptors: list[int]) -> None:
    """Make the descriptors the standard streams, opened as Python opens them at its start."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)


for name in USED:
    import_module(name)
gc.freeze()  # what all share is not copied by a collection
asked = await_request(socket.socket(fileno=int(sys.argv[1])))
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["env"])
sys.argv = [asked["program"], *asked["words"]]
sys.path[0] = os.path.dirname(asked["program"])
main()
