"""Boards as definitions of runs: their plan, and the code behind it."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from weft.agents.spec import Callee, Engine, Tool, Toolkit
from weft.assembly.service.providers import FilteredContextProvider
from weft.assembly.spec import Chosen
from weft.board.spec import TypeRegistry
from weft.errors import DefinitionError, PlanChanged, UsageError
from weft.kernel.documents import Document
from weft.kernel.models import Entry, Report
from weft.kernel.values import as_data, said
from weft.lifecycle.logic import order_hooks, read_hooks
from weft.lifecycle.spec import Hooks
from weft.log.events import RunStarted
from weft.reaction.logic.checking import refuse_problems
from weft.reaction.logic.plans import make_plan, plan_diff, subscription_digest
from weft.reaction.logic.reacting import Reacting
from weft.reaction.service.products import BoardProducts
from weft.reaction.spec import ContextFilter, Member, Plan
from weft.reaction.spec.builder import AgentBuilder
from weft.runtime.service.boards import collecting
from weft.runtime.service.users import ask_user_code
from weft.runtime.spec import Loaded, Staff
from weft.variables.logic.checking import Known, check_variables
from weft.variables.logic.conditions import Condition, parse_condition
from weft.variables.logic.derivation import Triggers
from weft.variables.spec import Variables
from weft.wiring.adapters import adapter

# Seconds that it may take to say whether a value may be published.
DEADLINE = 5.0

# What the root of a run says that belongs to a board.
ROOT = "board:"


@dataclass(slots=True)
class BoardDeclaration:
    """A board as a program declares it, agent by agent."""

    name: str
    types: TypeRegistry
    limit: int
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hooks: Sequence[Mapping[str, Any]] = ()
    builders: dict[str, AgentBuilder] = field(default_factory=dict[str, AgentBuilder])


class Boards:
    """The boards of an app; `engine` answers for agents that are given none."""

    def __init__(self, engine: Engine | None) -> None:
        self._engine = engine
        self._declared: dict[str, BoardDeclaration] = {}
        self._current: dict[str, Loaded] = {}
        self._known: dict[tuple[str, str], Loaded] = {}

    def declare(self, declaration: BoardDeclaration) -> None:
        """Know a board.

        Raises:
            UsageError: there is one of this name.
        """
        if declaration.name in self._declared:
            raise UsageError(
                f"This app has a board {declaration.name!r} already. Give the other one a name: "
                "`app.board(name=…)`."
            )
        self._declared[declaration.name] = declaration

    def change(self, name: str) -> None:
        """Take notice that a board is declared differently now."""
        self._current.pop(name, None)

    def load(self, name: str) -> Loaded:
        """A board as it is declared now.

        Raises:
            UsageError: it cannot work as it is declared.
            DefinitionError: its variables or hooks do not pass their check.
        """
        loaded = self._current.get(name)
        if loaded is None:
            loaded = self._current[name] = self._make(self._declared[name])
            self._known[name, loaded.definition] = loaded
        return loaded

    def restore(self, started: RunStarted, text: str) -> Loaded:
        """The board as a run began with it, whose plan has this text.

        Raises:
            UsageError: this program does not declare the board.
            PlanChanged: it declares it differently.
        """
        name = started.workflow
        if name not in self._declared:
            raise UsageError(
                f"This run belongs to board {name!r}, which this program does not declare. Go on "
                f"with it where `app.board({name!r})` and its agents are declared: "
                "`await board.resume()`."
            )
        current = self.load(name)
        plan = _plan(current)
        if started.collects and self._collects(plan, started):
            return collecting(current, started.collects)
        if not started.collects and (name, started.definition) in self._known:
            return self._known[name, started.definition]
        differs = plan_diff(text, plan.text)
        raise PlanChanged(
            f"Board {name!r} was declared differently when this run began, and is not run "
            f"otherwise. Declare it as it was, or cancel the run.\n{differs}".rstrip()
        )

    def _collects(self, plan: Plan, started: RunStarted) -> bool:
        agent = plan.members.get(started.collects.rpartition("#")[0])
        found = [s for s in agent.subscriptions if s.id == started.collects] if agent else []
        return any(subscription_digest(plan, each) == started.definition for each in found)

    def _make(self, declared: BoardDeclaration) -> Loaded:
        members = [builder.member() for builder in declared.builders.values()]
        plan = make_plan(declared.name, members, declared.limit, declared.types)
        refuse_problems(plan)
        variables = _variables(declared, plan)
        hooks, called = _hooks(declared, plan)
        toolkit, tools = _tools(plan)
        ask = partial(ask_user_code, deadline=DEADLINE)
        products = {
            name: BoardProducts(member, declared.types, ask)
            for name, member in plan.members.items()
        }
        triggers = Triggers(variables.definitions, toolkit.aliases)
        return Loaded(
            Reacting(plan, variables, triggers, hooks, toolkit, products),
            {name: self._staff(member) for name, member in plan.members.items()},
            f"{ROOT}{declared.name}",
            plan.digest,
            {},
            {},
            tools=tools,
            hooks=called,
            contexts=_contexts(plan),
            types=declared.types,
        )

    def _staff(self, member: Member) -> Staff:
        given = member.engines or ((self._engine,) if self._engine else ())
        if not given:
            raise UsageError(
                f"Agent {member.agent.name!r} has no engine. Give it one: `.with_engines(…)`, or "
                "one for all: `Weft(engine=…)`."
            )
        own = [getattr(engine, "context_provider", None) for engine in given]
        return Staff(
            tuple(map(_engine, given)),
            _chosen(member.context),
            tuple(None if each is None else Chosen(each) for each in own),
            member.components,
            member.samples,
            member.score,
            member.max_concurrency,
            member.reader,
        )


def _plan(loaded: Loaded) -> Plan:
    assert isinstance(loaded.workflow, Reacting)
    return loaded.workflow.plan


def _engine(given: Any) -> Engine:
    """An engine, or a function that answers as one."""
    if inspect.isroutine(given):
        return adapter("functions").FunctionEngine(given)
    return cast(Engine, given)


def _chosen(context: Chosen | ContextFilter | None) -> Chosen | None:
    if not isinstance(context, ContextFilter):
        return context
    return Chosen(
        FilteredContextProvider(
            context.filters, limit=context.limit, include_state_keys=context.include_state_keys
        )
    )


def _contexts(plan: Plan) -> dict[str, Chosen]:
    subscriptions = (s for member in plan.members.values() for s in member.subscriptions)
    return {each.id: each.context for each in subscriptions if each.context is not None}


def _tools(plan: Plan) -> tuple[Toolkit, dict[str, Callee]]:
    """The tools of all agents; those of one name are the same function."""
    found: dict[str, Callee] = {}
    functions: dict[str, Any] = {}
    for member in plan.members.values():
        for function in member.tools:
            name = function.__name__
            if functions.setdefault(name, function) is not function:
                raise UsageError(f"Two tools of the board are called {name!r}. Rename one of them.")
            if name not in found:
                found[name] = _callee(function, name)
    declared = {name: Tool(function=name, file="board") for name in found}
    bound = {
        name: tuple(tool.__name__ for tool in member.tools) for name, member in plan.members.items()
    }
    return Toolkit(declared, bound), found


def _callee(function: Any, name: str) -> Callee:
    try:
        return adapter("functions.calls").FunctionCallee(function, name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name!r} cannot be called: {said(error)}.") from error


def _variables(declared: BoardDeclaration, plan: Plan) -> Variables:
    if not declared.variables:
        return Variables()
    report = Report(declared.name)
    document = _document(declared.name, "variables", {"context_variables": declared.variables})
    checked = check_variables(report, document, Known(frozenset(plan.members)))
    _refuse(declared.name, report)
    return checked.variables


def _hooks(declared: BoardDeclaration, plan: Plan) -> tuple[Hooks, dict[int, Callee]]:
    """The hooks of a board, whose functions stand in the declaration itself."""
    if not declared.hooks:
        return {}, {}
    report = Report(declared.name)
    written = [_written(hook) for hook in declared.hooks]
    document = _document(declared.name, "hooks", {"hooks": written})
    checked = read_hooks(report, document, Entry(("hooks",), written))
    _refuse(declared.name, report)
    conditions: dict[int, Condition | None] = {}
    for number, each in enumerate(checked):
        agent = each.declared.agent
        if agent is not None and agent not in plan.members:
            message = f"A hook goes with agent {agent!r}, which is not on the board."
            report.add(document, each.path, "W020", message, "Name an agent of the board.")
        if each.declared.when is not None:
            conditions[number] = _condition(report, document, each.path, each.declared.when)
    ordered = order_hooks(report, document, checked, conditions)
    _refuse(declared.name, report)
    called = {
        number: _callee(hook["function"], written[number]["function"])
        for number, hook in enumerate(declared.hooks)
    }
    return ordered, called


def _condition(report: Report, document: Document, path: Any, text: str) -> Condition | None:
    try:
        return parse_condition(text)
    except ValueError as error:
        report.add(document, path, "W030", said(error))
        return None


def _written(hook: Mapping[str, Any]) -> dict[str, Any]:
    """A hook as a folder would declare it: its function by name."""
    function = hook.get("function")
    if not callable(function):
        raise UsageError(
            f"A hook of a board has a `function` that can be called, not {function!r}."
        )
    name = getattr(function, "__name__", type(function).__name__)
    return {"agent": None, **hook, "function": name, "file": function.__module__}


def _document(board: str, part: str, value: Any) -> Document:
    return Document(f"{ROOT}{board}/{part}", value, as_data(value))


def _refuse(board: str, report: Report) -> None:
    if any(problem.severity == "error" for problem in report.problems):
        raise DefinitionError(board, sorted(report.problems))
