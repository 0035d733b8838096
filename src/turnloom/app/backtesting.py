"""Backtests of recorded runs."""

from collections.abc import AsyncIterator, Sequence
from os import PathLike
from typing import Any

from turnloom.app.arguments import as_path
from turnloom.app.board import Board, loaded_board
from turnloom.app.choosing import BacktestChoice, RunChoice, list_runs
from turnloom.errors import TurnloomError, UnknownRun, UsageError
from turnloom.explain.logic.backtest import explain_backtest
from turnloom.explain.spec.backtest import Backtest, RefusedBacktest, RunBacktest
from turnloom.flow.logic.flows import Flow
from turnloom.kernel.arguments import as_count, as_name
from turnloom.kernel.values import preview
from turnloom.log.logic import started_of
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.backtest.runs import backtest as backtest_run
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.wiring import Parts

# Runs that are listed at a time.
PAGE = 100

Edited = str | PathLike[str] | Flow[Any] | Board


async def backtest(parts: Parts, edited: Edited, chosen: BacktestChoice, tenant: str) -> Backtest:
    """Decide recorded runs again with an edited definition.

    Raises:
        UnknownRun: there is no such run.
        DefinitionError: the definition does not pass its check.
        UsageError: it is not said which runs.
    """
    _check(chosen)
    loaded = await _load(parts, edited)
    found: list[RunBacktest] = []
    refused: list[RefusedBacktest] = []
    async for run in _chosen(parts, loaded, chosen, tenant):
        result = await _backtest(parts, loaded, run, tenant)
        if isinstance(result, RunBacktest):
            found.append(result)
        else:
            refused.append(result)
    return Backtest(_named(edited, loaded), tuple(found), tuple(refused))


def _check(chosen: BacktestChoice) -> None:
    is_filtered = any(each is not None for each in chosen[1:])
    if all(each is None for each in (chosen.runs, chosen.last, chosen.since, chosen.feedback)):
        raise UsageError("Say which runs to backtest: their ids, `last`, `since` or `feedback`.")
    if chosen.runs is not None and is_filtered:
        raise UsageError(
            "`last`, `since`, `workflow` and `feedback` choose runs. Leave them out with ids."
        )
    if chosen.last is not None:
        as_count(chosen.last, "`last`")
    if chosen.runs is not None and (isinstance(chosen.runs, str) or not _is_list(chosen.runs)):
        raise UsageError(f"`runs` is {preview(chosen.runs)}. Give a list of ids.")


def _is_list(given: object) -> bool:
    return isinstance(given, Sequence)


async def _load(parts: Parts, edited: Edited) -> LoadedWorkflow:
    if isinstance(edited, Board):
        return loaded_board(edited)
    if isinstance(edited, Flow):
        return parts.flows.load(edited)
    return await parts.definitions.load(as_path(edited, "The edited definition"))


def _named(edited: Edited, loaded: LoadedWorkflow) -> str:
    return loaded.workflow.name if isinstance(edited, Flow | Board) else str(edited)


async def _chosen(
    parts: Parts, loaded: LoadedWorkflow, chosen: BacktestChoice, tenant: str
) -> AsyncIterator[str]:
    """The ids of the chosen runs; of the filtered ones, the latest first."""
    if chosen.runs is not None:
        for run in chosen.runs:
            yield as_name(run, "The id of a run")
        return
    which = RunChoice(workflow=chosen.workflow or loaded.workflow.name)
    if chosen.since is not None:
        which["since"] = chosen.since
    if chosen.feedback is not None:
        which["feedback"] = chosen.feedback
    left, before = chosen.last, None
    while left is None or left > 0:
        most = PAGE if left is None else min(left, PAGE)
        page = await list_runs(parts, tenant, most, before, which=which, unfinished=False)
        for each in page:
            yield each.run
        if len(page) < most:
            return
        left = None if left is None else left - len(page)
        before = page[-1].run


async def _backtest(
    parts: Parts, loaded: LoadedWorkflow, run: str, tenant: str
) -> RunBacktest | RefusedBacktest:
    """The result of one run, or why there is none."""
    events: list[Event] = [*await parts.store.log.read(RunKey(tenant, run))]
    if not events:
        raise UnknownRun(run)
    try:
        wrapped, plans = bool(parts.world.components), parts.store.plans
        pinned = await _pinned(parts, events)
        found = await backtest_run(loaded, events, plans, pinned, has_components=wrapped)
    except TurnloomError as error:
        return RefusedBacktest(run, str(error))
    return explain_backtest(found)


async def _pinned(parts: Parts, events: Sequence[Event]) -> LoadedWorkflow | None:
    """The definition that a run of a folder is pinned to; None for a run of a board or flow, and if
    code is missing that it names."""
    started = started_of(events)
    if not started.files:
        return None
    try:
        return await parts.definitions.restore(started)
    except TurnloomError:
        return None
