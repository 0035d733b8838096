"""`turnloom` and scripts without their start: imports are nine tenths of what a short call costs.

A process that has done them is forked for each call. What comes of it is a process like any other,
with its own streams, folder, environment, signals and exit code.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, NamedTuple

import pytest

PROGRAM = str(Path(sys.executable).with_name("turnloom"))
SERVER = str(Path(__file__).with_name("warm_server.py"))
CLIENT = Path(__file__).with_name("warm_client.py")
PATIENCE = 55.0  # never reached: a busy machine is slow


class Done(NamedTuple):
    """A process that has ended."""

    code: int
    out: str
    err: str


class Process:
    """A running `turnloom`."""

    def __init__(self, reply: socket.socket) -> None:
        self._reply = reply
        self._reply.settimeout(PATIENCE)
        self.pid = int(reply.recv(64))
        self._code: int | None = None

    def wait(self) -> int:
        """The exit code, or minus the signal, of the process when it has ended."""
        if self._code is None:
            try:
                self._code = int(self._reply.recv(64))
            except TimeoutError:
                self.kill()
                raise
            self._reply.close()
        return self._code

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        if self._code is None and not select.select([self._reply], [], [], 0)[0]:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, signal.SIGKILL)


class Warm:
    """The process that is forked."""

    def __init__(self) -> None:
        self._control, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._tools = TemporaryDirectory()
        for name in ("turnloom", "python"):
            tool = Path(self._tools.name, name)
            tool.write_text(f"#!{sys.executable} -IS\n{CLIENT.read_text('utf-8')}", "utf-8")
            tool.chmod(0o755)
        with end:
            self._server = subprocess.Popen(
                [sys.executable, SERVER, str(end.fileno())], pass_fds=[end.fileno()]
            )

    def close(self) -> None:
        """End the process; what was forked from it stays."""
        self._control.close()
        self._server.wait(PATIENCE)
        self._tools.cleanup()

    def load(self, *modules: str) -> None:
        """Import modules once for all calls that follow."""
        self._control.send(json.dumps({"load": modules}).encode())

    def start(
        self,
        words: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        *streams: IO[Any] | int,
        program: str = PROGRAM,
    ) -> Process:
        """Start `turnloom`, or `python` with a script, with these words and streams."""
        asked = {"program": program, "words": words, "folder": str(folder), "env": dict(env)}
        reply, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        numbers = [each if isinstance(each, int) else each.fileno() for each in streams]
        with end:
            socket.send_fds(self._control, [json.dumps(asked).encode()], [*numbers, end.fileno()])
        return Process(reply)

    def run(self, words: Sequence[str], folder: Path, env: Mapping[str, str]) -> Done:
        """Run `turnloom` with nothing at its standard input."""
        with open(os.devnull) as nothing, TemporaryFile() as out, TemporaryFile() as err:
            code = self.start(words, folder, env, nothing, out, err).wait()
            return Done(code, _text(out), _text(err))

    def shell(self, line: str, folder: Path, env: Mapping[str, str]) -> Done:
        """What Bash makes of a line in which `turnloom` and `python` are warm; all is in `out`."""
        number = self._control.fileno()
        path = [self._tools.name, str(Path(sys.executable).parent), env["PATH"]]
        around = {"PATH": os.pathsep.join(path), "WARM_CONTROL": f"{number}"}
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env={**env, **around},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            pass_fds=[number],
            timeout=PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout, "")


@cache
def shared(config: pytest.Config) -> Warm:
    """The one process of this test run."""
    warm = Warm()
    config.add_cleanup(warm.close)
    return warm


@pytest.fixture(scope="session")
def warm(pytestconfig: pytest.Config) -> Warm:
    """`turnloom` without its start."""
    return shared(pytestconfig)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
