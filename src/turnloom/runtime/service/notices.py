"""What every workflow has without declaring it: lines in the program's log when a run begins and
ends. They are not on record."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

from turnloom.agents.spec import RunState
from turnloom.kernel.values import as_data
from turnloom.log.ports import Clock
from turnloom.runtime.logic import ENDED, is_untouched

log = logging.getLogger("turnloom.lifecycle")


class Notices:
    """Tells of the runs that are driven here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: set[tuple[str, str]] = set()

    @contextmanager
    def around(self, state: RunState, began: datetime) -> Generator[None]:
        """Tell of a run's begin if this drive is its first, and of its end if this is its last."""
        was_over = state.status in ENDED
        run = (state.tenant, state.run)
        if is_untouched(state) and run not in self._told:
            self._told.add(run)
            self.log_workflow_start(state)
        yield
        self._told.discard(run)  # from here on, the log tells that it began
        if state.status in ENDED and not was_over:
            self.log_workflow_completion(state, began)

    def log_workflow_start(self, state: RunState) -> None:
        """Say that a run begins, and whose it is."""
        if not log.isEnabledFor(logging.INFO):
            return
        log.info(
            "🚀 Workflow Initialized | workflow=%s | chat=%s | user=%s | app=%s | timestamp=%s",
            *map(_word, (state.workflow, state.run, state.user, state.tenant)),
            _instant(self._clock.now()),
        )

    def log_workflow_completion(self, state: RunState, began: datetime) -> None:
        """Say how a run ended, and how long it took."""
        if not log.isEnabledFor(logging.INFO):
            return
        now = self._clock.now()
        done = state.status == "finished"
        log.info(
            "%s | workflow=%s | chat=%s%s | duration=%.2fs | timestamp=%s",
            "✅ Workflow Completed" if done else "❌ Workflow Failed",
            *map(_word, (state.workflow, state.run)),
            "" if done else f" | status={state.status}",
            (now - began).total_seconds(),
            _instant(now),
        )


def _word(text: str) -> str:
    """A name as it stands, unless it could break the line."""
    return text if text.isprintable() else as_data(text)


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
