"""A process that has imported Turnloom and waits: each request forks it, and the fork does it.

A request is `{program, words, folder, env}` with four descriptors: standard input, output and
error, and a socket that is told the process id and, in the end, how the process ended. Programs are
`turnloom` and `python`, which takes a script. A request of `{load}` imports modules for all that
follow.
"""

import atexit
import gc
import json
import logging
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from importlib import import_module
from pkgutil import walk_packages
from selectors import EVENT_READ, DefaultSelector
from typing import Any, NoReturn

from turnloom import explain
from turnloom.cli.entry import NAMES, main

ROOM = 1 << 20
# What a call imports while it works, one or the other.
USED = [
    *(f"turnloom.cli.commands.{name}" for name in NAMES),
    *(f"turnloom.adapters.{name}" for name in ("files", "functions", "inline", "memory")),
    *(f"turnloom.adapters.{name}" for name in ("scripted", "sqlite", "system")),
    *("anyio._backends._asyncio", "jsonschema", "turnloom", "turnloom.testing"),
    *("typer._adapters", "typer.rich_utils"),
    *(each.name for each in walk_packages(explain.__path__, "turnloom.explain.")),
]


def load(names: list[str]) -> None:
    """Import modules, and leave nothing else behind: some set up logging for the whole process."""
    handlers, level = logging.root.handlers[:], logging.root.level
    for name in names:
        import_module(name)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    gc.collect()
    gc.freeze()  # what all share is not copied by a collection


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
                request = json.loads(text)
                if "load" in request:
                    load(request["load"])
                    continue
                pid = os.fork()
                if not pid:
                    control.close()
                    take_over(descriptors)
                    return request
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


def do(program: str, words: list[str]) -> None:
    """Do what the program does with these words."""
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if os.path.basename(program) == "turnloom":
        sys.argv, sys.path[0] = [program, *words], os.path.dirname(program)
        main()
    sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


def code_of(program: str, words: list[str]) -> int:
    """The code that Python ends with when it has done that."""
    try:
        do(program, words)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except BaseException:  # noqa: BLE001 - shown, as Python does
        traceback.print_exc()
        return 1
    return 0


def end(code: int) -> NoReturn:
    """End as Python does, but leave modules as they are: taking them apart costs half a call."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


load(USED)
asked = await_request(socket.socket(fileno=int(sys.argv[1])))
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["env"])
end(code_of(asked["program"], asked["words"]))
