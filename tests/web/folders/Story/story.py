"""A teller who goes on when a file allows it, so that tests see an answer grow."""

import time
from pathlib import Path

from turnloom import Task

PIECES = ("There was a harbour. ", "A boat came in. ", "It was empty.")


def tell(task: Task) -> str:
    for number, piece in enumerate(PIECES):
        while not Path(f"go-{task.turn}-{number}").exists():
            time.sleep(0.02)
        task.say(piece)
    return "".join(PIECES)
