"""What each field does that is declared about the context of agents."""

from typing import Any

from tests.parity.effects import (
    DEFINITIONS,
    IN_DATABASE,
    STORED,
    A,
    Effect,
    Path,
    data,
    first,
)
from tests.parity.runs import Seen

CONTEXT: Path = (*A, "context")
TOLD = {CONTEXT: {"provider": "told"}}
NOBODY, EMPTY = [[], []], [[{"told": {}}]] * 2


def given(seen: Seen) -> list[Any]:
    """The items that A was given, turn by turn."""
    return [task.context.items for task in seen.tasks if task.agent == "A"]


def message(author: str, text: str) -> dict[str, Any]:
    payload = {"author": author, "text": text}
    return {"type": "message", "payload": payload, "produced_by": author}


IN_FIELDS = {
    **IN_DATABASE,
    (*DEFINITIONS, "deep", "type"): "object",
    (*STORED, "field"): None,
    (*STORED, "fields"): ["f"],
}

CONTEXT_EFFECTS: dict[str, Effect] = {
    "DatabaseSource.fields": Effect(
        (*STORED, "fields"),
        ["f", "g.h"],
        first("deep"),
        {"f": "one"},
        {"f": "one", "g.h": "two"},
        IN_FIELDS,
    ),
    "Agent.context": Effect(CONTEXT, "told", given, NOBODY, EMPTY),
    "ContextChoice.provider": Effect(
        (*CONTEXT, "provider"),
        "transcript",
        given,
        EMPTY,
        [[], [message("A", "Hello."), message("user", "Yes.")]],
        TOLD,
    ),
    "ContextChoice.filter": Effect(
        (*CONTEXT, "filter"),
        {"limit": 1},
        lambda seen: [len(each) for each in given(seen)],
        [2, 2],
        [1, 1],
        {CONTEXT: {"filter": {}}},
    ),
    "ContextChoice.fallback": Effect(
        (*CONTEXT, "fallback"),
        "nothing",
        data("turn.finished", "status"),
        ["failed"],
        ["done"] * 3,
        {CONTEXT: {"provider": "fails"}},
    ),
    "ContextChoice.timeout_s": Effect(
        (*CONTEXT, "timeout_s"),
        0.01,
        data("provider.failed", "error"),
        [],
        ["ContextUnavailable"],
        {CONTEXT: {"provider": "slow"}},
    ),
    "ContextChoice.config": Effect(
        (*CONTEXT, "config"), {"most": 3}, given, EMPTY, [[{"told": {"most": 3}}]] * 2, TOLD
    ),
}
