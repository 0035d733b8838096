"""Replay and backtest every run that a test drove, with the definition that it was driven with.

    python -m pytest -p tests.support.replaying

does so at the end of every test, and fails if something is decided otherwise or differs.
"""

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from turnloom.explain.logic.replay import explain_replay
from turnloom.kernel.values import as_data
from turnloom.log.events import RunRetried
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.backtest.backtesting import backtest_all
from turnloom.runtime.backtest.spec import BacktestedRun, RecordedCase
from turnloom.runtime.drive.driver import Driver
from turnloom.runtime.drive.live import LiveRun
from turnloom.runtime.replay.replaying import replay_all
from turnloom.runtime.replay.spec import RecordedLog, ReplayedRun

# Tests whose runs are decided otherwise on purpose, each with the reason.
UNREPLAYED = {
    "test_what_has_no_key_is_on_record": "a key is an object, whose repr has its address",
    "test_a_function_that_does_not_come_back_is_left_behind": "it comes back when the test is over",
    "test_law_5_a_request_that_differs_from_the_one_on_record_is_not_made": "its log is forged",
    "test_only_what_is_not_kept_is_read": "it counts what is read of the log",
    "test_an_answer_that_cannot_be_applied_is_kept_for_corrected_code": "a closure has changed",
    "test_a_step_ends_just_after_its_fork_failed": "its step begins when its path is gone",
    "test_a_run_continues_when_a_description_changed": "what agents are shown has changed",
}


class DrivenRuns:
    """The runs of a test, each with its log and its definition after its last drive. A run that was
    driven with several definitions is left out: only a part of it was decided by each."""

    def __init__(self) -> None:
        self._runs: dict[tuple[RunKey, int], RecordedLog] = {}
        self._definitions: dict[tuple[RunKey, int], set[str]] = defaultdict(set)

    async def note(self, driver: Any, live: LiveRun) -> None:
        """Note a run after a drive."""
        log, run, loaded = driver._stores.log, live.journal.run, live.loaded
        log = getattr(log, "_log", log)  # of a program that a test kills
        plan = getattr(getattr(loaded.workflow, "plan", None), "text", "")
        kind = type(loaded.workflow).__name__
        events = await log.read(run)
        key = self._key(run, events)
        agents = repr(loaded.workflow.agents)
        told = [loaded.definition, dict(loaded.code), loaded.changed_code, plan, kind, agents]
        self._definitions[key].add(as_data(told))
        retries = [event.data for event in events if isinstance(event.data, RunRetried)]
        if loaded.changed_code or any(retry.pin or retry.budget for retry in retries):
            self._definitions[key].add("other code")
        wrapped = bool(driver._means.components)
        self._runs[key] = RecordedLog(
            loaded, events, [loaded] * len(retries), live.journal.secrets, has_components=wrapped
        )

    def _key(self, run: RunKey, events: Sequence[Event]) -> tuple[RunKey, int]:
        """The key of a run; worlds of one test may have runs of the same id."""
        for number in count():
            known = self._runs.get((run, number))
            before = known.events if known else ()
            if list(events[: len(before)]) == list(before):
                return run, number
        raise AssertionError

    def replay(self) -> list[ReplayedRun]:
        """Replay each run."""
        chosen = [key for key, found in self._definitions.items() if len(found) == 1]
        return replay_all([self._runs[key] for key in chosen])

    def differences(self) -> list[str]:
        """What is decided otherwise now, a line for each run."""
        return [str(explain_replay(each)) for each in self.replay() if each.same != each.events]

    def backtest(self) -> list[BacktestedRun]:
        """Backtest each run with the definition that it was driven with."""
        chosen = [key for key, found in self._definitions.items() if len(found) == 1]
        logs = [self._runs[key] for key in chosen]
        return backtest_all(
            RecordedCase(each.loaded, each.events, each.secrets, each.has_components)
            for each in logs
        )

    def changes(self) -> list[str]:
        """What a backtest with the unchanged definition finds: nothing."""
        return [
            f"{each.run}: {each.counts} {each.end} {each.first}"
            for each in self.backtest()
            if each.counts or each.end
        ]


@contextmanager
def noting_runs() -> Generator[DrivenRuns]:
    """Note the runs that are driven meanwhile."""
    driven = DrivenRuns()
    drive = Driver._run

    async def noted(driver: Driver, loop: Any, live: LiveRun) -> None:
        await drive(driver, loop, live)
        await driven.note(driver, live)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driver, "_run", noted)
        yield driven


@pytest.fixture(autouse=True)
def replayed(request: pytest.FixtureRequest) -> Generator[None]:
    """Replay every run that the test drives, at its end."""
    if getattr(request.node, "originalname", "") in UNREPLAYED:
        yield
        return
    with noting_runs() as driven:
        yield
    differences = driven.differences() or driven.changes()
    assert not differences, "\n".join(differences)
