"""Costs of model calls, by the prices of models."""

from collections.abc import Iterable, Mapping, Sequence

from turnloom.agents.events import ModelAnswered
from turnloom.explain.logic.turn import find_turn
from turnloom.explain.spec.cost import Cost
from turnloom.guards.spec import Price, find_price
from turnloom.log.spec import Event

UNNAMED = "an unnamed model"


def cost_of_call(call: ModelAnswered, prices: Mapping[str, Price]) -> Cost | None:
    """The cost of a model call; None if no model was called, as by a script or a function."""
    used = call.usage.input_tokens or call.usage.output_tokens
    if not used and not call.model:
        return None
    price = find_price(prices, call.model) if used else None
    if price is None:
        return Cost(unpriced=(call.model or UNNAMED,))
    return Cost(price.cost(call.usage))


def cost_of_run(events: Iterable[Event], prices: Mapping[str, Price]) -> Cost | None:
    """The cost of all model calls of a run, also of those that a retry voided; None without any."""
    total: Cost | None = None
    for event in events:
        if isinstance(event.data, ModelAnswered):
            total = added(total, cost_of_call(event.data, prices))
    return total


def cost_of_turn(events: Sequence[Event], turn: int, prices: Mapping[str, Price]) -> Cost | None:
    """The cost of the model calls of a turn; None without any.

    Raises:
        UsageError: there is no such turn.
    """
    find_turn(events, turn, None)
    calls = (each for each in events if isinstance(each.data, ModelAnswered))
    return cost_of_run((each for each in calls if each.data.turn == turn), prices)


def added(total: Cost | None, cost: Cost | None) -> Cost | None:
    """The sum of two costs, of which either may be missing."""
    return total + cost if total and cost else total or cost
