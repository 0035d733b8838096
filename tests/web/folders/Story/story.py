"""A teller who goes on when a file allows it, so that tests see an answer grow."""

import time
from pathlib import Path

from turnloom import Answer, Task, Usage

PIECES = ("There was a harbour. ", "A boat came in. ", "It was empty.")


def tell(task: Task) -> Answer:
    for number, piece in enumerate(PIECES):
        while not Path(f"go-{task.turn}-{number}").exists():
            time.sleep(0.02)
        task.say(piece)
    return Answer("".join(PIECES), Usage(4901, 51, cached_tokens=3900))
