"""Guards at work: budgets, and context windows."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, NoReturn, TypeVar

from turnloom.agents.events import ModelAnswered
from turnloom.agents.spec import Engine, Exchange, Task, Usage
from turnloom.errors import BudgetExceeded, ContextTooLarge, UsageError
from turnloom.guards import events
from turnloom.guards.events import WindowNeared
from turnloom.guards.logic.budgets import (
    exceeded_message,
    overtime,
    scarcity,
    seconds_left,
    shortages,
    used_by,
    wanted_by,
)
from turnloom.guards.logic.windows import POLICY, CallSize, describe_window, is_near
from turnloom.guards.spec import Amounts, RunBudget
from turnloom.kernel.values import preview
from turnloom.log.spec import Fact
from turnloom.runtime.journal import Journal
from turnloom.runtime.logic import scope_of

STEP = Amounts(steps=1)
TOOL_CALL = Amounts(tool_calls=1)

T = TypeVar("T")

log = logging.getLogger("turnloom.guards")


def afford(journal: Journal, charge: str, of: str) -> bool:
    """Reserve a step of the budget for a step or an agent; returns whether one was left. An empty
    charge is free."""
    if journal.guards.budget is None or not charge:
        return True
    try:
        reserve(journal, {charge: STEP}, of)
    except BudgetExceeded:
        return False  # recorded, and the run fails
    return True


def end_turn(journal: Journal, number: int) -> None:
    """Settle the step of a turn."""
    settle(journal, f"t{number}", STEP)


def begin_model_call(
    journal: Journal, key: str, model: str | None, shown: int, exchanges: Sequence[Exchange] = ()
) -> None:
    """Reserve a model call: the tokens of its frame, and of what was exchanged since.

    Raises:
        BudgetExceeded: there is not enough left for it.
    """
    budget = journal.guards.budget
    if budget is not None:
        reserve(journal, {key: wanted_by(budget, model, shown, exchanges)})


def end_model_call(journal: Journal, key: str, model: str | None, facts: Sequence[Fact]) -> None:
    """Settle a model call with the usage that its engine reports; a failed one reports none."""
    budget = journal.guards.budget
    if budget is not None:
        first = facts[0]
        usage = first.usage if isinstance(first, ModelAnswered) else Usage()
        settle(journal, key, used_by(budget, model, usage))


def begin_tool_calls(journal: Journal, keys: Sequence[str]) -> None:
    """Reserve calls of tools that are made side by side: all of them, or none.

    Raises:
        BudgetExceeded: there are not enough left for all of them.
    """
    reserve(journal, dict.fromkeys(keys, TOOL_CALL))


def end_tool_call(journal: Journal, key: str) -> None:
    """Settle a tool call."""
    settle(journal, key, TOOL_CALL)


def reserve(journal: Journal, wanted: dict[str, Amounts], of: str = "") -> None:
    """Reserve the amounts of calls by key; existing reservations are kept. `of` is the step or
    agent that has not begun yet.

    Raises:
        BudgetExceeded: there is not enough left.
    """
    budget, watch = journal.guards.budget, journal.state.guards
    if budget is None:
        return
    left = {key: each for key, each in wanted.items() if not journal.recorded(f"{key}/reserved")}
    if not left:
        return
    total = sum(left.values(), Amounts())
    call, short = ", ".join(left), shortages(budget, watch, total, journal.time.now())
    if short or journal.recorded(f"{call}/exceeded"):
        refuse(journal, call, short, of)
    for key, amounts in left.items():
        journal.record(f"{key}/reserved", events.BudgetReserved(key, amounts))


def refuse(
    journal: Journal, call: str, short: tuple[events.Shortage, ...], of: str = ""
) -> NoReturn:
    """Record that the budget does not suffice for a call.

    Raises:
        BudgetExceeded: always.
    """
    scope = scope_of(journal.state, call)
    fact = events.BudgetExceededFact(call, short, of or (scope.agent if scope else ""))
    raise BudgetExceeded(exceeded_message(journal.keep(f"{call}/exceeded", lambda: fact)))


def settle(journal: Journal, key: str, spent: Amounts) -> None:
    """Record the usage of a call, and the new scarcity of the budget if it changed."""
    budget, watch = journal.guards.budget, journal.state.guards
    if budget is None or journal.recorded(f"{key}/spent"):
        return
    journal.record(f"{key}/spent", events.BudgetSpent(key, spent))
    now = scarcity(budget, watch)
    if now.level != watch.level:
        fact = events.ScarcityChanged(now.level, watch.level, now.resource, now.share)
        journal.record(f"{key}/scarcity", fact)
        if now.level in ("scarce", "critical"):
            said = (journal.state.run, now.level, 100 * now.share, now.resource)
            log.warning("run %s: the budget is %s, %d %% of %s are left", *said)


def within(journal: Journal, seconds: float) -> float:
    """Cap a timeout by the run's remaining time."""
    budget = journal.guards.budget
    if budget is None:
        return seconds
    left = seconds_left(budget, journal.state.guards, journal.clock.now())
    return seconds if left is None else max(0.0, min(seconds, left))


def in_time(journal: Journal, key: str, answering: Awaitable[T]) -> Awaitable[T]:
    """A call that is cut off when the time of the run is over.

    Raises:
        BudgetExceeded: it was.
    """
    budget = journal.guards.budget
    if budget is None or budget.wall_time is None:
        return answering
    return _cut_off(journal, budget, key, answering)


async def _cut_off(journal: Journal, budget: RunBudget, key: str, answering: Awaitable[T]) -> T:
    deadline = asyncio.timeout(seconds_left(budget, journal.state.guards, journal.clock.now()))
    try:
        async with deadline:
            return await answering
    except TimeoutError:
        if not deadline.expired():
            raise
        refuse(journal, key, (overtime(budget),))


def window_of(engine: Engine | None, model: str | None, setting: int) -> int:
    """The context window of a model in tokens: the setting, otherwise the value that the engine
    knows; 0 if both are missing.

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
    """Refuse a call that does not fit into the window. Record, once per run and agent, a call that
    nearly fills it; `id` is that of the record.

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
        task.turn,
        task.agent,
        size.tokens,
        window,
        largest=size.largest,
        model=task.model or "",
        counter=size.counter,
    )
    journal.record(id, fact)
    await journal.commit()
    log.warning("run %s: %s. %s", journal.state.run, describe_window(fact), POLICY)
