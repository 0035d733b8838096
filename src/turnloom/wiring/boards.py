"""Boards as definitions of runs: their plan, and the code behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from turnloom.agents.spec import Engine
from turnloom.assembly.service.providers import FilteredContextProvider
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.means import no_search
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import TypeRegistry
from turnloom.errors import PlanChanged, UsageError
from turnloom.guards.spec import NO_GUARDS, Guards
from turnloom.log.events import RunStarted
from turnloom.reaction.logic.checking import (
    refuse_guards,
    refuse_joins,
    refuse_problems,
    refuse_sources,
    refuse_strangers,
)
from turnloom.reaction.logic.plans import collects, decide_alike, make_plan, plan_diff
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.reaction.service.products import BoardProducts
from turnloom.reaction.spec import BoardPlan, ContextFilter, Member
from turnloom.reaction.spec.builder import AgentBuilder
from turnloom.runs.declared import read_code_hooks, read_guards, read_variables, toolkit_of
from turnloom.runtime.board import BoardRuntime
from turnloom.runtime.boards import collecting
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow
from turnloom.runtime.user_code import ask_user_code
from turnloom.variables.logic.derivation import Triggers
from turnloom.wiring.code import callee_of, warn_of
from turnloom.wiring.collections import Collections, comparing, counter_for
from turnloom.wiring.doors import Capabilities
from turnloom.wiring.models import ModelEngines, NoEngine, own_contexts

# What the root of a run says that belongs to a board.
ROOT = "board:"

# Seconds that it may take to say whether a value may be published.
DEADLINE = 5.0


@dataclass(slots=True)
class BoardDeclaration:
    """A board as a program declares it for a tenant, agent by agent."""

    name: str
    tenant: str
    types: TypeRegistry
    limit: int
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hooks: Sequence[Mapping[str, Any]] = ()
    guards: Guards | Mapping[str, Any] | None = None
    builders: dict[str, AgentBuilder] = field(default_factory=dict[str, AgentBuilder])


class Boards:
    """The boards of an app; `engine` answers for agents that are given none, `collections` are
    what sources look into, `models` is what asks models, and `can` is what the store can do."""

    def __init__(
        self,
        engine: Engine | None,
        collections: Collections | None = None,
        models: ModelEngines | None = None,
        can: Capabilities | None = None,
    ) -> None:
        self._can = can or Capabilities()
        self._engine = engine
        self._collections = collections
        self._models = models or ModelEngines()
        self._declared: dict[str, BoardDeclaration] = {}
        self._current: dict[str, LoadedWorkflow] = {}
        self._known: dict[tuple[str, str], LoadedWorkflow] = {}

    def declare(self, declaration: BoardDeclaration) -> None:
        """Know a board.

        Raises:
            UsageError: there is one of this name, or the store keeps no artifacts.
        """
        self._can.need("artifacts", f"Board {declaration.name!r}")
        if declaration.name in self._declared:
            raise UsageError(
                f"This app has a board {declaration.name!r} already. Give the other one a name: "
                "`app.board(name=…)`."
            )
        self._declared[declaration.name] = declaration

    def knows(self, name: str, tenant: str) -> bool:
        """Whether a board of this name is declared for a tenant."""
        return name in self._declared and self._declared[name].tenant == tenant

    def change(self, name: str) -> None:
        """Take notice that a board is declared differently now."""
        self._current.pop(name, None)

    def load(self, name: str) -> LoadedWorkflow:
        """A board as it is declared now.

        Raises:
            UsageError: it cannot work as it is declared.
            DefinitionError: its variables, hooks or sources do not pass their check.
        """
        loaded = self._current.get(name)
        if loaded is None:
            loaded = self._current[name] = self._make(self._declared[name])
            self._known[name, loaded.definition] = loaded
            warn_of(name, loaded.warnings)
        return loaded

    def restore(self, started: RunStarted, text: str) -> LoadedWorkflow:
        """The board as a run began with it, whose plan has this text.

        Raises:
            UsageError: this program does not declare the board.
            PlanChanged: it declares it differently.
        """
        name = started.workflow
        if not self.knows(name, started.tenant):
            raise UsageError(
                f"This run belongs to board {name!r}, which this program does not declare. Go on "
                f"with it where `app.board({name!r})` and its agents are declared: "
                "`await board.resume()`."
            )
        current = self.load(name)
        plan = _plan(current)
        if started.collects and collects(plan, started.collects, started.definition):
            return collecting(current, started.collects)
        if not started.collects and (name, started.definition) in self._known:
            return self._known[name, started.definition]
        if not started.collects and decide_alike(text, plan.text):
            return current
        differs = plan_diff(text, plan.text)
        raise PlanChanged(
            f"Board {name!r} was declared differently when this run began, and is not run "
            f"otherwise. Declare it as it was, or cancel the run.\n{differs}".rstrip()
        )

    def _make(self, declared: BoardDeclaration) -> LoadedWorkflow:
        members = [builder.member() for builder in declared.builders.values()]
        where = f"{ROOT}{declared.name}"
        models = {each.agent.name: each.agent.model for each in members}
        guards = read_guards(where, declared.guards, models)
        self._can.need_for_guards(guards)
        said = guards if guards != NO_GUARDS else None
        beside = {"variables": declared.variables, "hooks": declared.hooks, "guards": said}
        plan = make_plan(declared.name, members, declared.limit, declared.types, beside=beside)
        refuse_problems(plan)
        refuse_strangers(plan, declared.tenant)
        given = {name: each.tools for name, each in plan.members.items()}
        toolkit, tools = toolkit_of(given, callee_of)
        variables, functions, warnings = read_variables(
            where, declared.variables, plan.members, toolkit
        )
        refuse_joins(plan, declared.types)
        refuse_sources(plan, variables.definitions, declared.types)
        refuse_guards(plan, guards, variables.definitions)
        if self._collections:
            self._collections.open_named(each.context for each in plan.members.values())
        hooks, called = read_code_hooks(where, declared.hooks, plan.members, callee_of)
        ask = partial(ask_user_code, deadline=DEADLINE)
        products = {
            name: BoardProducts(member, declared.types, ask)
            for name, member in plan.members.items()
        }
        triggers = Triggers(variables.definitions, toolkit.aliases)
        return LoadedWorkflow(
            ReactionForm(plan, variables, triggers, hooks, toolkit=toolkit, products=products),
            {name: self._staff(member, declared.tenant) for name, member in plan.members.items()},
            f"{ROOT}{declared.name}",
            plan.digest,
            files={},
            code={},
            functions=functions,
            tools=tools,
            hooks=called,
            contexts=_contexts(plan),
            types=declared.types,
            search=self._collections.search if self._collections else no_search,
            counter=counter_for(each.context for each in plan.members.values()),
            runtime=BoardRuntime,
            guards=guards,
            embedder=comparing(guards),
            warnings=warnings,
        )

    def _staff(self, member: Member, tenant: str) -> AgentRuntime:
        try:
            given = [*map(self._models.answering, member.engines)] or self._common(member)
        except NoEngine as error:
            message = f"Nothing answers for agent {member.agent.name!r}. {error.message}"
            raise UsageError(f"{message} {error.remedy}".rstrip()) from error
        return AgentRuntime(
            tuple(given),
            _chosen(member.context),
            own_contexts(given),
            member.components,
            samples=member.samples,
            score=member.score,
            most=member.max_concurrency,
            reader=member.reader(tenant),
        )

    def _common(self, member: Member) -> list[Engine]:
        """The engine of an agent that is given none."""
        if self._engine is not None:
            return [self._models.answering(self._engine)]
        common = self._models.common()
        if common is not None:
            return [common]
        remedy = (
            "Give it one: `.with_engines(…)`, or one for all: `Loom(model=…)`, `Loom(engine=…)`."
        )
        raise NoEngine("No engine is named.", remedy)


def _plan(loaded: LoadedWorkflow) -> BoardPlan:
    assert isinstance(loaded.workflow, ReactionForm)
    return loaded.workflow.plan


def _chosen(
    context: ChosenProvider | ContextFilter | Assembly | None,
) -> ChosenProvider | Assembly | None:
    if not isinstance(context, ContextFilter):
        return context
    return ChosenProvider(
        FilteredContextProvider(
            context.filters, limit=context.limit, include_state_keys=context.include_state_keys
        )
    )


def _contexts(plan: BoardPlan) -> dict[str, ChosenProvider]:
    subscriptions = (s for member in plan.members.values() for s in member.subscriptions)
    return {each.id: each.context for each in subscriptions if each.context is not None}
