"""Agents of a board as two plans declare them: the one of a run, and the edited one."""

from collections.abc import Mapping
from typing import Any

import msgspec

from turnloom.agents.events import AgentOutput
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.runtime.spec import LoadedWorkflow


class DeclaredAgents:
    """What two plans of a board declare of an agent. Without the plan of the run, they are taken to
    be the same."""

    def __init__(self, plan: str, loaded: LoadedWorkflow) -> None:
        form = loaded.workflow
        self._form = form if isinstance(form, ReactionForm) and plan else None
        self._before = _agents(plan if self._form else "{}")
        self._now = _agents(self._form.plan.text if self._form else "{}")

    def has_same_context(self, agent: str) -> bool:
        """Whether an agent gets its context in the same way."""
        before, now = self._before.get(agent), self._now.get(agent)
        if before is None or now is None:
            return True
        return all(before.get(key) == now.get(key) for key in ("context", "labels", "tenant"))

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


def _agents(text: str) -> Mapping[str, Mapping[str, Any]]:
    return msgspec.json.decode(text, type=dict[str, Any]).get("agents", {})


def _product(agent: Mapping[str, Any], type: str) -> Mapping[str, Any] | None:
    return next((each for each in agent.get("products", ()) if each.get("type") == type), None)
