"""The command line as people have it: a process, a terminal, a folder of one's own."""

import os
import pty
import select
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.folders import write_folder
from tests.support.servers import mongo_server, mongo_url, postgres_server, postgres_url
from tests.support.warm import PATIENCE, PROGRAM, Done, Process, Warm, warm

__all__ = ["PROGRAM", "mongo_server", "mongo_url", "postgres_server", "postgres_url", "warm"]

ROOT = Path(__file__).parents[2]
INTERVIEW = str(ROOT / "workflows" / "Interview")
UNSET = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "ENVIRONMENT", "CONTEXT_AWARE")

# Two agents with lines, a user with lines, and a handover.
CHAT = {
    "orchestrator.yaml": "{initial_agent: Poet, human_in_the_loop: true}",
    "agents.yaml": """
        agents:
          Poet: {system_message: Rhyme., engine: scripted}
          Critic: {system_message: Judge., engine: scripted}
        """,
    "context_variables.yaml": """
        definitions:
          done:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_text, agent: Poet, match: {equals: NEXT}, hide: true}]
        agents: {Critic: {variables: [done]}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - source_agent: Poet
            target_agent: Critic
            handoff_type: condition
            condition: ${done} == True
          - {source_agent: Poet, target_agent: user, handoff_type: after_work}
          - {source_agent: Critic, target_agent: terminate, handoff_type: after_work}
          - {source_agent: user, target_agent: Poet, handoff_type: after_work}
        """,
    "script.yaml": """
        agents:
          Poet: [Roses are red., Violets are blue., NEXT]
          Critic: ["It rhymes."]
        user: [Go on., Enough.]
        """,
}

# One agent whose function waits to be stopped: `nap` in the loop, `doze` in a thread.
SLOW = {
    "orchestrator.yaml": "{initial_agent: Sleeper}",
    "agents.yaml": """
        agents:
          Sleeper:
            system_message: Sleep.
            engine: {type: functions, file: slow.py, function: nap}
        """,
    "slow.py": """
        import asyncio
        import time


        async def nap(task):
            await asyncio.sleep(3600)


        def doze(task):
            time.sleep(3600)
        """,
}


def surroundings(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TURNLOOM_") and name not in UNSET
    }
    return kept | {"TERM": "xterm-256color", "PAGER": "cat"} | dict(extra)


Call = Callable[..., Done]


def run_shell(line: str, folder: Path, env: Mapping[str, str]) -> Done:
    """What a shell makes of a line in which `PROGRAM` stands: a cold one, with all it takes."""
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def turnloom(tmp_path: Path, warm: Warm) -> Call:
    def call(*words: str, code: int = 0, shell: str = "", folder: str = "", **env: str) -> Done:
        """Run `turnloom` with these words, or a shell line; it must end with `code`.

        Whatever goes wrong is said, and not by a traceback.
        """
        around, place = surroundings(env), tmp_path / folder
        done = run_shell(shell, place, around) if shell else warm.run(words, place, around)
        assert done.code == code, done
        assert "Traceback" not in done.err or "--debug" in words, done
        return done

    return call


@pytest.fixture
def chat(tmp_path: Path) -> str:
    write_folder(tmp_path, CHAT, "Chat")
    return "Chat"


class Seat:
    """A person at a terminal in which `turnloom` runs."""

    def __init__(self, start: Callable[[int], Process]) -> None:
        self._screen, end = pty.openpty()
        termios.tcsetwinsize(end, (40, 120))
        self.process = start(end)
        os.close(end)
        self.seen = ""
        self._read = 0

    def until(self, text: str) -> str:
        """Wait until a text appears behind what was waited for before, and give what came."""
        while (at := self.seen.find(text, self._read)) < 0:
            assert self._more(), f"{text!r} never came: {self.seen[self._read :]!r}"
        came = self.seen[self._read : at + len(text)]
        self._read = at + len(text)
        return came

    def type(self, text: str, end: str = "\n") -> None:
        os.write(self._screen, (text + end).encode())

    def interrupt(self) -> None:
        os.kill(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for the end of the process, and give its exit code."""
        while self._more():
            pass
        return self.process.wait()

    def leave(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def _more(self) -> bool:
        assert select.select([self._screen], [], [], PATIENCE)[0], f"stuck: {self.seen!r}"
        try:
            came = os.read(self._screen, 65536)
        except OSError:  # the other end of the terminal is closed
            return False
        self.seen += came.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(came)


Sit = Callable[..., Seat]


@pytest.fixture
def sit(tmp_path: Path, warm: Warm) -> Iterator[Sit]:
    seats: list[Seat] = []

    def take(*words: str, **env: str) -> Seat:
        around = surroundings(env)
        seats.append(Seat(lambda end: warm.start(words, tmp_path, around, end, end, end)))
        return seats[-1]

    yield take
    for seat in seats:
        seat.leave()
