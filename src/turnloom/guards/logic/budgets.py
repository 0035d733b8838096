"""Budgets: reservations, shortages and scarcity, and the check of declared limits."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from turnloom.agents.spec import Exchange, Usage
from turnloom.assembly.logic import estimate
from turnloom.guards.events import BudgetExceededFact, Shortage
from turnloom.guards.spec import (
    ANY_MODEL,
    RESOURCES,
    WALL_TIME,
    Amounts,
    Guards,
    LoopDetection,
    RunBudget,
    Strategies,
    Watch,
)
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import Report

# The level of a budget by the share that is left: more than the number.
LEVELS = ((0.7, "abundant"), (0.3, "normal"), (0.1, "scarce"))
WORST = "critical"


class Scarcity(NamedTuple):
    """The scarcity of a budget: its level, and the resource with the smallest share left."""

    level: str
    resource: str
    share: float


def wanted_by(
    budget: RunBudget, model: str | None, shown: int, exchanges: Sequence[Exchange]
) -> Amounts:
    """The amounts that a model call reserves: its input tokens, and some for the answer."""
    exchanged = estimate(msgspec.json.encode(exchanges).decode()) if exchanges else 0
    usage = Usage(shown + exchanged, budget.answer_tokens)
    return used_by(budget, model, usage)


def used_by(budget: RunBudget, model: str | None, usage: Usage) -> Amounts:
    """The amounts that a model call used."""
    price = budget.price(model)
    cost = 0.0 if price is None else price.cost(usage)
    return Amounts(tokens=usage.input_tokens + usage.output_tokens, model_calls=1, cost=cost)


def shortages(
    budget: RunBudget, watch: Watch, wanted: Amounts, now: datetime
) -> tuple[Shortage, ...]:
    """Every resource of which more is wanted than is left."""
    used = sum(watch.held.values(), watch.spent)
    return tuple(_short(budget, watch, wanted, used, now=now))


def _short(
    budget: RunBudget, watch: Watch, wanted: Amounts, used: Amounts, now: datetime
) -> Iterator[Shortage]:
    for resource in Amounts.__struct_fields__:
        limit, amount = getattr(budget, resource), getattr(wanted, resource)
        if limit is None or not amount:
            continue
        left = _left(limit, getattr(used, resource))
        if amount > left:
            yield Shortage(resource, amount, left, limit)
    seconds = seconds_left(budget, watch, now)
    if seconds is not None and seconds <= 0:
        yield overtime(budget, seconds)


def overtime(budget: RunBudget, left: float = 0.0) -> Shortage:
    """The shortage of a run without time left."""
    return Shortage(WALL_TIME, 0.0, left, budget.wall_time or 0.0)


def _left(limit: float, used: float) -> float:
    """What is left of a limit, rounded: sums of prices are not exact."""
    return round(limit - used, 9)


def seconds_left(budget: RunBudget, watch: Watch, now: datetime) -> float | None:
    """The seconds that the run has left; None without a limit."""
    if budget.wall_time is None:
        return None
    running = (now - watch.at).total_seconds() if watch.at is not None else 0.0
    return _left(budget.wall_time, watch.seconds + max(running, 0.0))


def scarcity(budget: RunBudget, watch: Watch) -> Scarcity:
    """The scarcity of the budget: its scarcest resource decides."""
    shares = [
        (max(0.0, _left(limit, _spent(watch, resource)) / limit), resource)
        for resource in RESOURCES
        if (limit := getattr(budget, resource)) is not None
    ]
    share, resource = min(shares, default=(1.0, ""))
    level = next((name for least, name in LEVELS if share > least), WORST)
    return Scarcity(level, resource, share)


def _spent(watch: Watch, resource: str) -> float:
    return watch.seconds if resource == WALL_TIME else getattr(watch.spent, resource)


def exceeded_message(fact: BudgetExceededFact) -> str:
    """The resources that were short, and the remedy."""
    short = "; ".join(map(_shortage_text, fact.short))
    return (
        f"Budget exceeded for {_subject(fact)}: {short}. Raise the limit in `guards.budget`, or "
        "reduce the work of the workflow."
    )


def _subject(fact: BudgetExceededFact) -> str:
    """The step or agent that exceeds the budget, with the key of the call in the log."""
    if not fact.of:
        return fact.call
    return f"{'step' if fact.call.startswith('s') else 'agent'} {fact.of!r} ({fact.call})"


def _shortage_text(short: Shortage) -> str:
    if short.resource == WALL_TIME:
        return f"the wall_time of {short.limit:g} s has passed"
    return f"{short.resource}: {short.wanted:g} wanted, {short.left:g} of {short.limit:g} left"


def check_guards(
    report: Report,
    document: DeclarationFile,
    path: Path,
    guards: Guards,
    models: Mapping[str, str | None],
) -> None:
    """Report problems of the guards for agents with these models."""
    budget = guards.budget
    if budget is None or budget.cost is None:
        return
    for agent, model in models.items():
        if budget.price(model) is None:
            which = "an unnamed model" if model is None else f"model {model!r}"
            message = f"Agent {agent!r} uses {which}, which has no price."
            remedy = f"Add it to `prices`, or a price for any model: `{ANY_MODEL!r}`."
            report.add(document, (*path, "budget", "prices"), "W068", message, remedy=remedy)


def escalations(detection: LoopDetection) -> Iterator[tuple[str, ...]]:
    """The paths of the settings that ask a person about a loop."""
    for loop in Strategies.model_fields:
        if getattr(detection.strategies, loop) == "escalate":
            yield "strategies", loop
    if detection.then == "escalate":
        yield ("then",)
