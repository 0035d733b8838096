"""Plain code with the minimum of work, as the baseline of all ratios."""

import sqlite3
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from time import process_time

import msgspec

from bench.workload import AGENTS, FACTS, Stopwatch
from turnloom import Task
from turnloom.assembly.spec import Transcript

RECORD = bytes(300)
TASK = Task("run", AGENTS[0], 0, 0, "run/t0", "", Transcript(()))


class Segment(msgspec.Struct, frozen=True, gc=False):
    origin: str
    digest: str


class Shown(msgspec.Struct, frozen=True, gc=False):
    """A minimal record of one turn: the shown texts and their origins."""

    turn: int
    agent: str
    segments: tuple[Segment, ...]
    history: str
    digest: str


async def loop(turns: int) -> float:
    """CPU seconds per turn of a loop that calls the engine and keeps the answers."""
    engine, messages = Stopwatch(()), list[tuple[str, str]]()
    begin = process_time()
    for turn in range(turns):
        answer = await engine(TASK)
        messages.append((AGENTS[turn % 2], answer.text))
    return (process_time() - begin) / turns


async def loop_with_record(turns: int) -> float:
    """The same loop with one record per turn."""
    engine, messages, records = Stopwatch(()), list[tuple[str, str]](), list[bytes]()
    encode = msgspec.json.Encoder().encode
    system = tuple(Segment(f"variables.fact_{n}", _digest(f"fact_{n}")) for n in range(FACTS))
    view, history = _digest(*(segment.digest for segment in system)), _digest("")
    said = Segment("messages.0", _digest(""))
    begin = process_time()
    for turn in range(turns):
        agent = AGENTS[turn % 2]
        shown = Shown(turn, agent, (*system, said), history, _digest(view, history))
        records.append(encode(shown))
        answer = await engine(TASK)
        messages.append((agent, answer.text))
        said = Segment(f"messages.{turn}", _digest(agent, answer.text))
        history = _digest(history, said.digest)
    return (process_time() - begin) / turns


def _digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()


async def loop_with_commit(turns: int, file: Path) -> float:
    """A bare loop with one commit per turn to a fresh SQLite file."""
    engine, messages = Stopwatch(()), list[tuple[str, str]]()
    with closing(_create(file)) as connection:
        begin = process_time()
        for turn in range(turns):
            answer = await engine(TASK)
            messages.append((AGENTS[turn % 2], answer.text))
            connection.execute("INSERT INTO log (data) VALUES (?)", (RECORD,))
            connection.commit()
        return (process_time() - begin) / turns


def _create(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE log (n INTEGER PRIMARY KEY, data BLOB)")
    return connection


def read_back(records: int, file: Path) -> float:
    """CPU seconds to read and decode records of the size of an event."""
    with closing(_create(file)) as connection:
        data = msgspec.json.encode(dict.fromkeys(map(str, range(10)), "x" * 22))
        connection.executemany("INSERT INTO log (data) VALUES (?)", [(data,)] * records)
        connection.commit()
    begin = process_time()
    with closing(sqlite3.connect(file)) as connection:
        found = [
            msgspec.json.decode(data) for (data,) in connection.execute("SELECT data FROM log")
        ]
    assert len(found) == records
    return process_time() - begin
