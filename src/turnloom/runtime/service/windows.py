"""Calls of models within their windows."""

import logging
from typing import Any

from turnloom.agents.spec import Engine, Task
from turnloom.errors import ContextTooLarge, UsageError
from turnloom.guards.events import WindowNeared
from turnloom.guards.logic.windows import POLICY, CallSize, is_near, told_near
from turnloom.kernel.values import preview
from turnloom.runtime.service.journal import Journal

log = logging.getLogger("turnloom.guards")


def window_of(engine: Engine | None, model: str | None, setting: int) -> int:
    """How many tokens fit into the window of a model: as the setting says, else as the engine
    knows; 0 if neither does.

    Raises:
        UsageError: the engine gives no number.
    """
    known: Any = getattr(engine, "context_window", None)
    if setting or not callable(known):
        return setting
    window = known(model)
    if window is not None and (type(window) is not int or window < 1):
        who = type(engine).__name__
        raise UsageError(
            f"`context_window` of {who} gives {preview(window)}. Let it give tokens, or None."
        )
    return window or 0


async def heed_window(journal: Journal, id: str, task: Task, size: CallSize, window: int) -> None:
    """Refuse a call that does not fit into a window, and put it on record, once in a run for each
    agent, when one takes most of it; `id` is that of the record.

    Raises:
        ContextTooLarge: it does not fit.
    """
    if size.tokens > window:
        model = f"model {task.model!r}" if task.model else "the model"
        raise ContextTooLarge(
            f"The window of {model} has {window:,} tokens, too few for this call."
        )
    if not is_near(size.tokens, window) or task.agent in journal.state.crowded:
        return
    fact = WindowNeared(
        task.turn, task.agent, size.tokens, window, size.largest, task.model or "", size.counter
    )
    journal.record(id, fact)
    await journal.commit()
    log.warning("run %s: %s. %s", journal.state.run, told_near(fact), POLICY)
