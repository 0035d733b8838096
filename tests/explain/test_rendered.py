"""The one place that pins the words of explanations; the other tests look at their values.

After a change of words, remove `rendered.txt`: the next run writes it, and fails once.
"""

import re
from pathlib import Path

from tests.explain.conftest import Told
from turnloom.explain.logic.timeline import timeline

FILE = Path(__file__).with_name("rendered.txt")


def timeless(text: str, run: str) -> str:
    """A text without what differs from run to run: its id, times, digests and folders."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^ ,)\n]*", "INSTANT", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "SECONDS", text.replace(run, "RUN"))
    text = re.sub(r"\b\d\d:\d\d:\d\d(\.\d+)?", "TIME", text)
    text = re.sub(r"raised in /\S*/", "raised in ", text)
    return re.sub(r" +", " ", re.sub(r"\b[0-9a-f]{12,}\b", "DIGEST", text))


async def test_explanations_have_these_words(busy: Told) -> None:
    routes = [event.seq for event in busy.events if event.kind == "route.decided"]
    told = [
        timeline(busy.events),
        *(busy.turn(number) for number in (1, 2)),
        *(busy.route(seq) for seq in routes),
        *(busy.variable(name) for name in ("accepted", "total", "pool", "draft", "colour")),
    ]
    rule = f"\n{'=' * 80}\n"
    text = rule.join(timeless(str(each), busy.events[0].run) for each in told) + "\n"
    if not FILE.exists():
        FILE.write_text(text, "utf-8")
        raise AssertionError(f"{FILE.name} was recorded: read it, and run this again")
    assert text == FILE.read_text("utf-8")
