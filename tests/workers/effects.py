"""Effects that write down their keys: each execution has a name of its own, which its result holds.

The file that `EFFECTS` names has one line per execution, in the order in which they began.
"""

import asyncio
import os
import re
from collections.abc import Iterable
from itertools import count
from pathlib import Path

_numbers = count(1)
_TOKEN = re.compile(r"<<(\S+) (\S+)>>")

# Seconds that an effect takes.
SECONDS = 0.03


async def perform(key: str) -> str:
    """Carry out an effect; the text says its key and which execution it was."""
    execution = f"{os.getpid()}.{next(_numbers)}"
    line = f"{key} {execution}\n".encode()
    file = os.open(os.environ["EFFECTS"], os.O_APPEND | os.O_WRONLY | os.O_CREAT)
    try:
        os.write(file, line)
    finally:
        os.close(file)
    await asyncio.sleep(float(os.environ.get("EFFECT_SECONDS", SECONDS)))
    return f"<<{key} {execution}>>"


def executions(file: Path) -> dict[str, list[str]]:
    """The executions of every key, in the order in which they began."""
    found: dict[str, list[str]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        key, execution = line.split(" ")
        found.setdefault(key, []).append(execution)
    return found


def recorded(texts: Iterable[str]) -> dict[str, set[str]]:
    """The executions of every key that are on record."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for key, execution in _TOKEN.findall(text):
            found.setdefault(key, set()).add(execution)
    return found


def plain(text: str) -> str:
    """A text without the keys and executions in it."""
    return _TOKEN.sub("<<>>", text)
