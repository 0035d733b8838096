"""Boards as workflows: their plans, engines and functions."""

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

# Prefix of `RunStarted.root` in runs of boards.
ROOT = "board:"

# Timeout of a `validate` function, in seconds.
DEADLINE = 5.0


@dataclass(slots=True)
class BoardDeclaration:
    """A board that a program declares for a tenant, with its agents."""

    name: str
    tenant: str
    types: TypeRegistry
    limit: int
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hooks: Sequence[Mapping[str, Any]] = ()
    guards: Guards | Mapping[str, Any] | None = None
    builders: dict[str, AgentBuilder] = field(default_factory=dict[str, AgentBuilder])
    is_closed: bool = False


class Boards:
    """Boards of an app. `engine` is the default of agents without engines, `collections` serve
    their sources, `models` makes model engines, and `can` describes the store."""

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
        """Register a board.

        Raises:
            UsageError: the name is taken, or the store has no artifacts.
        """
        self._can.need("artifacts", f"Board {declaration.name!r}")
        if declaration.name in self._declared:
            raise UsageError(
                f"Board {declaration.name!r} is already declared. Choose another name: "
                "`app.board(name=…)`."
            )
        self._declared[declaration.name] = declaration

    def named(self, tenant: str) -> list[str]:
        """The names of the boards that are declared for a tenant."""
        return [name for name, board in self._declared.items() if board.tenant == tenant]

    def knows(self, name: str, tenant: str) -> bool:
        """Whether the tenant has a board of this name."""
        return name in self._declared and self._declared[name].tenant == tenant

    def change(self, name: str) -> None:
        """Drop the loaded board after a change of its declaration."""
        self._current.pop(name, None)

    def load(self, name: str) -> LoadedWorkflow:
        """Return the board as currently declared.

        Raises:
            UsageError: the declaration is invalid.
            DefinitionError: its variables, hooks or sources are invalid.
        """
        loaded = self._current.get(name)
        if loaded is None:
            loaded = self._current[name] = self._make(self._declared[name])
            self._known[name, loaded.definition] = loaded
            warn_of(name, loaded.warnings)
        return loaded

    def restore(self, started: RunStarted, text: str) -> LoadedWorkflow:
        """Return the board as it was when the run started; `text` is the plan of the run.

        Raises:
            UsageError: this program does not declare the board.
            PlanChanged: the declaration has changed.
        """
        name = started.workflow
        if not self.knows(name, started.tenant):
            raise UsageError(
                f"This run belongs to board {name!r}, which this program does not declare. "
                f"Resume it in a program that declares `app.board({name!r})` and its agents: "
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
            f"Board {name!r} has changed since this run started. Restore its declaration, or "
            f"cancel the run.\n{differs}".rstrip()
        )

    def _make(self, declared: BoardDeclaration) -> LoadedWorkflow:
        members = [builder.member() for builder in declared.builders.values()]
        where = f"{ROOT}{declared.name}"
        models = {each.agent.name: each.agent.model for each in members}
        guards = read_guards(where, declared.guards, models)
        self._can.need_for_guards(guards)
        limits = guards if guards != NO_GUARDS else None
        beside = {"variables": declared.variables, "hooks": declared.hooks, "guards": limits}
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
            message = f"Agent {member.agent.name!r} has no engine. {error.message}"
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
        """Default engine of an agent without engines."""
        if self._engine is not None:
            return [self._models.answering(self._engine)]
        common = self._models.common()
        if common is not None:
            return [common]
        remedy = "Add `.with_engines(…)`, or set a default: `Loom(model=…)` or `Loom(engine=…)`."
        raise NoEngine("No default is set.", remedy)


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
