"""What a task holds, by the names under which programs of DSPy take it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from turnloom.agents.logic.dialogues import AGAIN, GO_ON, WRONG
from turnloom.agents.spec import WORKFLOW, Task
from turnloom.kernel.values import Json

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def held_by(task: Task) -> dict[str, Any]:
    """All that a task holds; artifacts by their types, a list where several are of one type."""
    heard = (message.text for message in reversed(task.transcript) if message.author != task.agent)
    return {
        "conversation": "\n".join(_said(task)),
        "question": next(heard, GO_ON),
        "system": task.system,
        "context": task.context.items,
        **artifacts_of(task),
    }


def artifacts_of(task: Task) -> dict[str, Any]:
    """The artifacts that woke the agent, by their types."""
    found: dict[str, list[dict[str, Json]]] = {}
    for artifact in task.inputs:
        found.setdefault(snake(artifact.type.rpartition(".")[2]), []).append(artifact.payload)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


def snake(name: str) -> str:
    """The name of a type as that of a field."""
    return _HUMP.sub("_", name).lower()


def _said(task: Task) -> Iterator[str]:
    """What was said and by whom; on a board, where inputs say the rest, in this turn alone."""
    for message in () if task.inputs else task.transcript:
        yield f"{message.author}: {message.text}"
    yield from exchanged(task)


def exchanged(task: Task) -> Iterator[str]:
    """What the agent said in this turn before, and what was wrong with it."""
    for exchange in task.exchanges:
        if exchange.text:
            yield f"{task.agent}: {exchange.text}"
        if exchange.problem:
            yield f"{WORKFLOW}: {WRONG.strip()}\n{exchange.problem}{AGAIN}"


def added_to(task: Task, shown: Iterable[str]) -> tuple[str, ...]:
    """What stands in texts that a model was shown, and is not held by the task: runs of lines, each
    once, in order."""
    held = {line.strip() for text in _texts(task) for line in text.splitlines()}
    found: dict[str, None] = {}
    for text in shown:
        lines = groupby(text.splitlines(), lambda line: bool(line.strip()) and line.strip() in held)
        runs = ("\n".join(run).strip("\n") for is_held, run in lines if not is_held)
        found |= dict.fromkeys(run for run in runs if run.strip())
    return tuple(found)


def _texts(task: Task) -> Iterator[str]:
    """The texts of a task, as they may stand in a prompt."""
    yield task.system
    for message in task.transcript:
        yield from (message.text, f"{message.author}: {message.text}")
    for exchange in task.exchanges:
        yield from (f"{task.agent}: {exchange.text}", exchange.problem)
    held: Mapping[str, Any] = {"": task.context.items, **artifacts_of(task)}
    yield from (json.dumps(value, ensure_ascii=False) for value in held.values())
