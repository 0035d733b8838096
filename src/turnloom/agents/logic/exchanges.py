"""What an engine is told, in the later calls of a turn, of the earlier ones."""

from collections.abc import Sequence

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    ModelAnswered,
    OutputRefused,
    ToolFailed,
    ToolReturned,
)
from turnloom.agents.spec import Exchange, ToolResult
from turnloom.kernel.digests import chain, digest
from turnloom.kernel.values import Json, as_data
from turnloom.log.spec import Fact

# How a call of a tool ended.
Outcome = ToolReturned | ToolFailed


def request(frame: str, exchanges: Sequence[Exchange]) -> str:
    """The digest of what an engine is asked with: the frame, and what was exchanged since."""
    return chain(frame, *(digest(as_data(each)) for each in exchanges)) if exchanges else frame


def exchange_of(
    answered: ModelAnswered, said: Sequence[Fact], outcomes: Sequence[Outcome]
) -> Exchange | None:
    """What the engine is told of its answer and of the tools behind it, if it is asked again.

    `said` is what the answer came to, and `outcomes` how the tools ended that it had called, or
    that took its output.
    """
    if answered.calls:
        text = next((fact.text for fact in said if isinstance(fact, AgentText)), "")
        return Exchange(text, answered.calls, tuple(map(_result, outcomes)))
    for fact in said:
        if isinstance(fact, OutputRefused):
            return Exchange(answered.raw, problem=fact.problem)
        if isinstance(fact, AgentOutput):
            return _failed(fact.output, outcomes)
    return None


def passed_on(said: Sequence[Fact]) -> Exchange:
    """What the next engine of a turn is told of what the one before it said and made."""
    words = [fact.text for fact in said if isinstance(fact, AgentText)]
    made = [as_data(fact.output) for fact in said if isinstance(fact, AgentOutput)]
    drafts = [fact.raw for fact in said if isinstance(fact, ModelAnswered) and fact.raw]
    return Exchange("\n".join((*words, *made) or drafts))


def _result(outcome: Outcome) -> ToolResult:
    if isinstance(outcome, ToolReturned):
        return ToolResult(outcome.result)
    return ToolResult(error=f"{outcome.error}: {outcome.message}")


def _failed(output: Json, outcomes: Sequence[Outcome]) -> Exchange | None:
    """What is wrong with an output, by the first tool that failed with it."""
    for outcome in outcomes:
        if isinstance(outcome, ToolFailed):
            problem = f"Tool {outcome.tool} failed with it: {outcome.error}: {outcome.message}"
            return Exchange(as_data(output), problem=problem)
    return None
