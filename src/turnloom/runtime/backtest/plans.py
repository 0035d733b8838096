"""Agents of a board as two plans declare them: the one of a run, and the edited one."""

from collections.abc import Mapping
from typing import Any

import msgspec

from turnloom.agents.events import AgentOutput
from turnloom.assembly.logic.descriptions import settings_of
from turnloom.flow.logic.flowing import FlowForm
from turnloom.kernel.values import as_object
from turnloom.log.logic import started_of
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.runtime.backtest.spec import RecordedCase
from turnloom.runtime.spec import LoadedWorkflow


class DeclaredAgents:
    """What two definitions declare of an agent. Without the one of the run, they are taken to be
    the same."""

    def __init__(self, case: RecordedCase) -> None:
        form = case.loaded.workflow
        self._form = form if isinstance(form, ReactionForm) and case.plan else None
        self._before = _agents(case.plan if self._form else "{}")
        self._now = _agents(self._form.plan.text if self._form else "{}")
        self._contexts = _contexts_of_plans(case) or _contexts_of_folders(case)

    def has_same_context(self, agent: str) -> bool:
        """Whether an agent gets its context in the same way."""
        before, now = (each.get(agent) for each in self._contexts)
        return before is None or now is None or before == now

    def product(
        self, agent: str, type: str
    ) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
        """How both plans declare what an agent publishes of a type."""
        if agent not in self._before:
            return None, None
        return _product(self._before[agent], type), _product(self._now.get(agent, {}), type)

    def labelled(
        self, fact: AgentOutput, before: Mapping[str, Any], now: Mapping[str, Any]
    ) -> AgentOutput:
        """An output with the labels of the edited declaration, where it had those of the other."""
        assert self._form is not None
        product = self._form.plan.members[fact.agent].product(fact.model)
        if product is None:
            return fact
        tags, visibility = fact.tags, fact.visibility
        if sorted(tags) == sorted(before.get("tags", ())):
            tags = tuple(sorted(product.tags))
        if before.get("visibility") != now.get("visibility"):
            visibility = product.visibility
        return msgspec.structs.replace(fact, tags=tags, visibility=visibility)


# The settings of a provider in a definition that cannot be restored.
UNKNOWN = "unknown"

_Contexts = tuple[Mapping[str, Any], Mapping[str, Any]]


def _contexts_of_plans(case: RecordedCase) -> _Contexts | None:
    """How agents of a board or flow get their context, in the plan of the run and in the edited
    one."""
    form = case.loaded.workflow
    if not case.plan or not isinstance(form, ReactionForm | FlowForm):
        return None
    read = _board_contexts if isinstance(form, ReactionForm) else _step_contexts
    return read(case.plan), read(form.plan.text)


def _contexts_of_folders(case: RecordedCase) -> _Contexts:
    """How agents of a folder get their context, as it was and as it is now."""
    now = _settings(case.loaded)
    if case.pinned is not None:
        return _settings(case.pinned), now
    is_same = started_of(case.events).files == case.loaded.files
    return now if is_same else dict.fromkeys(now, UNKNOWN), now


def _settings(loaded: LoadedWorkflow) -> Mapping[str, list[str]]:
    return {
        name: [*map(settings_of, (each.context, *each.contexts))]
        for name, each in loaded.staff.items()
    }


def _board_contexts(text: str) -> Mapping[str, Any]:
    keys = ("context", "labels", "tenant")
    return {name: [agent.get(key) for key in keys] for name, agent in _agents(text).items()}


def _step_contexts(text: str) -> Mapping[str, Any]:
    paths = msgspec.json.decode(text, type=dict[str, Any]).get("paths", {})
    nodes = [node for path in paths.values() for node in path if as_object(node)]
    steps = [*nodes, *(node["join"] for node in nodes if node.get("join"))]
    return {step["name"]: step.get("context", []) for step in steps if "name" in step}


def _agents(text: str) -> Mapping[str, Mapping[str, Any]]:
    return msgspec.json.decode(text, type=dict[str, Any]).get("agents", {})


def _product(agent: Mapping[str, Any], type: str) -> Mapping[str, Any] | None:
    return next((each for each in agent.get("products", ()) if each.get("type") == type), None)
