"""Every feature of a turn is in every form, shown by a run, or refused by it with a reason."""

from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tests.docs.markdown import DOCS
from tests.parity.forms.cells import Refused, Works
from tests.parity.forms.table import FORMS, PAGE, parts, table
from turnloom import AgentStep, FlowSettings, Guards, Loom
from turnloom.agents.spec import Agent
from turnloom.conversation.logic.checking import PARTS
from turnloom.errors import DefinitionError, UsageError
from turnloom.flow.spec.builder import StepSettings
from turnloom.flow.spec.steps import StepAgent
from turnloom.reaction.spec import Member
from turnloom.reaction.spec.builder import AgentBuilder
from turnloom.runs.brief import Brief
from turnloom.runtime.spec import AgentRuntime

ROWS = list(FORMS["conversation"])
CELLS = [(form, row) for form, cells in FORMS.items() for row in cells]
WORKING = [(form, row) for form, row in CELLS if isinstance(FORMS[form][row], Works)]
REFUSED = [(form, row) for form, row in CELLS if isinstance(FORMS[form][row], Refused)]

# What every form has.
EVERYWHERE = {
    "components around turns",
    "components around calls",
    "components of the app",
    "observers of the app",
    "engines one after the other",
    "concurrency limits",
    "labels",
}


def test_every_form_says_something_of_every_feature() -> None:
    assert [list(cells) for cells in FORMS.values()] == [ROWS] * len(FORMS)
    assert {row for row in ROWS if all((form, row) in WORKING for form in FORMS)} >= EVERYWHERE


@pytest.mark.parametrize(("form", "row"), WORKING)
async def test_a_feature_makes_the_difference_that_is_said(
    form: str, row: str, tmp_path: Path
) -> None:
    cell = FORMS[form][row]
    assert isinstance(cell, Works) and cell.before != cell.after
    assert await cell.play(False, tmp_path / "without") == cell.before
    assert await cell.play(True, tmp_path / "with") == cell.after


@pytest.mark.parametrize(("form", "row"), REFUSED)
async def test_a_feature_that_a_form_does_not_have_is_refused(
    form: str, row: str, tmp_path: Path
) -> None:
    cell = FORMS[form][row]
    assert isinstance(cell, Refused) and cell.why
    with pytest.raises((DefinitionError, UsageError)) as refused:
        await cell.attempt(tmp_path)
    assert codes(refused.value) == [cell.code]


def codes(error: Exception) -> list[str]:
    """The codes of what a check says, or the name of the error."""
    if isinstance(error, DefinitionError):
        return [each.code for each in error.diagnostics if each.severity == "error"]
    return [type(error).__name__]


def test_the_page_has_the_table() -> None:
    _, found, _ = parts(PAGE.read_text("utf-8"))
    assert found == table(), "Run `python -m tests.parity.forms.table`."


@pytest.mark.parametrize(("form", "row"), WORKING)
def test_a_cell_leads_to_a_page_that_is_there(form: str, row: str) -> None:
    cell = FORMS[form][row]
    assert isinstance(cell, Works)
    page, _, heading = cell.page.partition("#")
    text = (DOCS / page).read_text("utf-8")
    titles = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert not heading or heading in {title.lower().replace(" ", "-") for title in titles}


# ------------------------------------------------------------------ nothing is in no row

# What can be said of an agent, by the feature that it belongs to; `own` words say what only their
# form knows: when a turn is taken, and what becomes of it.
OWN = "own"
WORDS: dict[str, dict[str, str]] = {
    "Agent": {
        "name": OWN,
        "system_message": "instructions",
        "prompt_sections": "instructions",
        "engine": "models by name",
        "engines": "engines one after the other",
        "model": "models by name",
        "tools": "tools",
        "max_tool_rounds": "rounds of tool calls",
        "auto_tool_mode": "outputs",
        "structured_outputs": "outputs",
        "structured_outputs_required": "outputs",
        "max_consecutive_auto_reply": OWN,
        "context": "context providers",
        "components": "components around turns",
        "labels": "labels",
        "max_concurrency": "concurrency limits",
    },
    "AgentBuilder": {
        "description": "instructions",
        "consumes": OWN,
        "publishes": "outputs",
        "with_engines": "engines one after the other",
        "with_tools": "tools",
        "with_context": "context providers",
        "with_context_filter": "context providers",
        "with_sources": "sources and token budgets",
        "with_components": "components around turns",
        "labels": "labels",
        "tenant": "labels",
        "best_of": "best of several tries",
        "max_concurrency": "concurrency limits",
        "prevent_self_trigger": OWN,
    },
    "AgentStep": {
        "output_type": "outputs",
        "engine": "models by name",
        "engines": "selection",
        "model": "models by name",
        "tools": "tools",
        "max_tool_rounds": "rounds of tool calls",
        "thread": OWN,
        "on_text": "streaming",
        "instructions": "instructions",
        "user_prompt": OWN,
        "build_messages": OWN,
        "apply": OWN,
        "with_engines": "engines one after the other",
        "with_components": "components around turns",
        "labels": "labels",
        "best_of": "best of several tries",
        "max_concurrency": "concurrency limits",
    },
    "Settings": {
        **dict.fromkeys(("name", "retry", "timeout", "require_confidence"), OWN),
        **dict.fromkeys(("on_low_confidence", "validate", "compensate"), OWN),
        **dict.fromkeys(("compensate_timeout", "on_failure", "recover", "cache"), OWN),
        "context": "context providers",
        "budget": "sources and token budgets",
        "format": "sources and token budgets",
        "select": "selection",
    },
    "Member": {
        **dict.fromkeys(("agent", "subscriptions", "wakes_itself"), OWN),
        "products": "outputs",
        "engines": "engines one after the other",
        "tools": "tools",
        "components": "components around turns",
        "context": "context providers",
        "labels": "labels",
        "tenant": "labels",
        "samples": "best of several tries",
        "score": "best of several tries",
        "max_concurrency": "concurrency limits",
    },
    "StepAgent": {
        "engines": "engines one after the other",
        "components": "components around turns",
        "labels": "labels",
        "samples": "best of several tries",
        "score": "best of several tries",
        "max_concurrency": "concurrency limits",
    },
    "AgentRuntime": {
        "engines": "engines one after the other",
        "context": "context providers",
        "contexts": "an engine's own context",
        "components": "components around turns",
        "samples": "best of several tries",
        "score": "best of several tries",
        "most": "concurrency limits",
        "reader": "labels",
        "labels": "labels",
        "named": "selection",
    },
    "Guards": {
        "budget": "run budgets",
        "loop_detection": "loop detection",
        "selection": "selection",
    },
    "a folder": {
        **dict.fromkeys(("orchestrator", "agents", "handoffs", "ui_config", "script"), OWN),
        "context_variables": "variables",
        "tools": "tools",
        "structured_outputs": "outputs",
        "hooks": "message hooks",
    },
    "a board": {
        **dict.fromkeys(("name", "user_id", "app_id", "max_turns"), OWN),
        "variables": "variables",
        "hooks": "lifecycle hooks",
        "guards": "run budgets",
    },
    "a flow": {
        **dict.fromkeys(("name", "state", "version", "timeout", "migrate"), OWN),
        "variables": "variables",
        "hooks": "lifecycle hooks",
        "guards": "run budgets",
    },
    "Brief": {
        **dict.fromkeys(("turn", "agent", "correlation", "inputs", "hears_history"), OWN),
        **dict.fromkeys(("applies_context", "timeout", "request", "settle"), OWN),
        "about": "sources and token budgets",
        "choice": "selection",
        "engines": "selection",
        "contexts": "context providers",
        "listen": "streaming",
    },
}


def public(names: Any) -> set[str]:
    """The names that are not private."""
    return {name for name in names if not name.startswith("_")}


def found() -> dict[str, set[str]]:
    """All that can be said of an agent, as the code has it."""
    return {
        "Agent": set(Agent.model_fields),
        "AgentBuilder": public(vars(AgentBuilder)) - {"member"},
        "AgentStep": public((*vars(AgentStep), *AgentStep.__annotations__)),
        "Settings": set(StepSettings.__annotations__),
        "Member": {each.name for each in fields(Member)},
        "StepAgent": {each.name for each in fields(StepAgent)},
        "AgentRuntime": {each.name for each in fields(AgentRuntime)},
        "Guards": set(Guards.model_fields),
        "a folder": set(PARTS),
        "a board": {*signature(Loom.board).parameters} - {"self"},
        "a flow": {"name", "state", *FlowSettings.__annotations__},
        "Brief": public((*vars(Brief), *Brief.__annotations__)),
    }


def unplaced(there: dict[str, set[str]]) -> set[str]:
    """What can be said and is in no row, or what is in one and cannot be said."""
    return {
        f"{owner}.{word}"
        for owner, words in there.items()
        for word in words.symmetric_difference(WORDS[owner])
    }


def test_all_that_can_be_said_of_an_agent_is_in_a_row() -> None:
    assert unplaced(found()) == set()
    named = {row for words in WORDS.values() for row in words.values()} - {OWN}
    assert named <= set(ROWS)


@pytest.mark.parametrize("owner", WORDS)
def test_a_word_that_somebody_adds_is_missed_here(owner: str) -> None:
    planted = {
        name: words | ({"colour"} if name == owner else set()) for name, words in found().items()
    }
    assert unplaced(planted) == {f"{owner}.colour"}
