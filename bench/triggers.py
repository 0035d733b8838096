"""The cost of an event that changes one derived variable, among few and among many."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.measures import Measure, Rounds, Size, settle
from turnloom.agents.events import AgentText
from turnloom.agents.spec import RunState
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.logic.triggers import definition_model
from turnloom.variables.spec import VariableDefinition

AGENT = "A"
FEW, MANY = 10, 10_000
LIMIT = 2.0
AT = datetime(2026, 1, 1, tzinfo=UTC)


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare a message that sets one of ten derived variables to one of ten thousand."""
    indexes = {count: Triggers(_definitions(count)) for count in (FEW, MANY)}
    rounds = Rounds()
    for _ in range(size.rounds):
        for count, triggers in indexes.items():
            settle()
            rounds.add(_case(count), _cost(triggers, count, size.plain_turns))
    value, ratio = rounds.least(_case(MANY)) * 1e6, rounds.ratio(_case(MANY), _case(FEW))
    yield Measure("derive", _case(MANY), value, "µs/event", _case(FEW), ratio, LIMIT)


def _case(count: int) -> str:
    return f"one of {count:,} derived"


def _definitions(count: int) -> dict[str, VariableDefinition]:
    model = definition_model()
    return {f"v{n}": model.model_validate(_definition(n)) for n in range(count)}


def _definition(number: int) -> dict[str, object]:
    match = {"equals": f"word {number}"}
    trigger = {"type": "agent_text", "agent": AGENT, "match": match}
    source = {"type": "derived", "default": False, "triggers": [trigger]}
    return {"name": f"v{number}", "type": "boolean", "source": source}


def _cost(triggers: Triggers, count: int, events: int) -> float:
    """CPU seconds per event."""
    state = RunState("bench", values={f"v{n}": False for n in range(count)})
    facts = [AgentText(1, AGENT, f"Word {n % count} ") for n in range(events)]
    begin = time.process_time()
    for fact in facts:
        triggers.derive(fact.kind, fact, state, state.fired, AT)
    return (time.process_time() - begin) / events
