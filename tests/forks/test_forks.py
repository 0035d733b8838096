"""Forks of conversations: what they share, what they change, and what they may do."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.world import at_rest
from turnloom import Answer, Loom, Run, Task, ToolCall, UnknownRun, UsageError

DESK = {
    "orchestrator.yaml": """
        startup_mode: AgentDriven
        initial_agent: Clerk
        orchestration_pattern: DefaultPattern
        """,
    "agents.yaml": "agents: {Clerk: {system_message: Serve.}}",
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Clerk, target_agent: terminate, handoff_type: after_work,
             condition_type: expression, condition: ${sold} == true}
          - {source_agent: Clerk, target_agent: user, handoff_type: after_work}
        """,
    "context_variables.yaml": """
        definitions:
          tone: {type: string, source: {type: static, value: warm}, enum: [warm, cool]}
          key: {type: string, secret: true, source: {type: environment, env_var: DESK_KEY}}
          sold: {type: boolean, source: {type: state, default: false, triggers: []}}
        agents: {Clerk: {variables: [tone]}}
        """,
    "tools.yaml": "tools: [{agent: Clerk, file: desk.py, function: sell}]",
    "desk.py": """
        from tests.forks.test_forks import sold

        def sell(what: str, context_variables) -> str:
            sold[what] += 1
            context_variables.set("sold", True)
            return f"{what} for {len(what)}"
        """,
}

# What was sold.
sold: Counter[str] = Counter()


async def clerk(task: Task) -> Answer:
    """Asks what to sell, and sells that."""
    if task.exchanges:
        return Answer(f"{task.exchanges[-1].results[0].result or 'Nothing'}.")
    said = task.messages[-1].text if task.messages else ""
    return Answer(calls=(ToolCall("sell", {"what": said}),)) if task.turn > 1 else Answer("What?")
