"""Whether guards can do what is declared."""

from collections.abc import Iterator, Mapping

from turnloom.guards.spec import Guards, LoopDetection, Strategies
from turnloom.guards.spec.budgets import ANY_MODEL
from turnloom.kernel.documents import Document, Path
from turnloom.kernel.models import Report


def check_guards(
    report: Report,
    document: Document,
    path: Path,
    guards: Guards,
    models: Mapping[str, str | None],
) -> None:
    """Note what is wrong with guards of agents that answer with these models."""
    budget = guards.budget
    if budget is None or budget.cost is None:
        return
    for agent, model in models.items():
        if budget.price(model) is None:
            which = "a model without a name" if model is None else f"model {model!r}"
            message = f"Agent {agent!r} answers with {which}, which has no price."
            remedy = f"Add it to `prices`, or a price for any model: `{ANY_MODEL!r}`."
            report.add(document, (*path, "budget", "prices"), "W068", message, remedy)


def escalations(detection: LoopDetection) -> Iterator[tuple[str, ...]]:
    """Where it is declared that people are asked about loops."""
    for loop in Strategies.model_fields:
        if getattr(detection.strategies, loop) == "escalate":
            yield "strategies", loop
    if detection.then == "escalate":
        yield ("then",)
