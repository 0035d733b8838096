"""Checks of a whole board, beyond those of each declaration."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import make_dataclass
from typing import Any

from pydantic import BaseModel, RootModel

from turnloom.agents.spec import USER
from turnloom.assembly.logic.checking import SourceProblem, check_sources
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import TypeRegistry
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.guards.spec import Guards, Selection
from turnloom.kernel.values import nearest
from turnloom.reaction.spec import BoardPlan, Subscription

# Types without fields.
SCALARS = (str, int, float, bool)


def check_plan(plan: BoardPlan) -> list[str]:
    """Problems that keep parts of a board from ever working, a sentence each."""
    return [
        problem
        for member in plan.members.values()
        for subscription in member.subscriptions
        if subscription.from_agents is not None
        for problem in _check_producers(plan, subscription, subscription.from_agents)
    ]


def refuse_problems(plan: BoardPlan) -> None:
    """Refuse a board with a part that can never work.

    Raises:
        UsageError: the board has such parts; all are listed.
    """
    _refuse(plan, check_plan(plan))


def refuse_strangers(plan: BoardPlan, tenant: str) -> None:
    """Refuse a board with agents of another tenant.

    Raises:
        UsageError: the board has such agents; all are listed.
    """
    _refuse(
        plan,
        [
            f"Agent {name!r} belongs to tenant {member.tenant!r}, but the board to {tenant!r}. "
            f"Drop `.tenant(…)`, or create the board with `app_id={member.tenant!r}`."
            for name, member in plan.members.items()
            if member.tenant not in ("", tenant)
        ],
    )


def refuse_sources(plan: BoardPlan, variables: Collection[str], types: TypeRegistry) -> None:
    """Refuse a board with context sources that name something unknown.

    Raises:
        DefinitionError: the board has such sources; `diagnostics` lists all.
    """
    found = (
        Diagnostic(f"board:{plan.name}/{member.agent.name}", 1, code, message, remedy=remedy)
        for member in plan.members.values()
        if isinstance(member.context, Assembly)
        for subscription in member.subscriptions
        for _, code, message, remedy, _ in _check_assembly(
            member.context, subscription, variables, types
        )
    )
    if problems := [*dict.fromkeys(found)]:
        raise DefinitionError(plan.name, problems)


def refuse_joins(plan: BoardPlan, types: TypeRegistry) -> None:
    """Refuse a board with joins by a field that its artifacts do not have.

    Raises:
        UsageError: the board has such joins; all are listed.
    """
    _refuse(
        plan,
        [
            f"{each.id!r} joins by {path!r}, which {name!r} does not have. Its fields: "
            f"{', '.join(_fields(types.model(name)))}."
            for member in plan.members.values()
            for each in member.subscriptions
            if each.join is not None and isinstance(path := each.join.by, str)
            for name in dict.fromkeys(each.types)
            if not _may_have(types.model(name), path.split("."))
        ],
    )


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """The types of a payload's fields, by their names in the payload."""
    return {
        each.serialization_alias or name: each.annotation
        for name, each in model.model_fields.items()
    }


def _may_have(model: type[BaseModel], names: Sequence[str]) -> bool:
    """Whether payloads of a type may have a value at this path; true if unknown."""
    if issubclass(model, RootModel) or model.model_config.get("extra") == "allow":
        return True
    first, *others = names
    fields = _fields(model)
    return first in fields and not (others and fields[first] in SCALARS)


def refuse_guards(plan: BoardPlan, guards: Guards, variables: Collection[str]) -> None:
    """Refuse a board with guards that name something unknown.

    Raises:
        UsageError: the guards have such names; all are listed.
    """
    if guards.selection is not None:
        _refuse(plan, [*_check_selection(plan, guards.selection, variables)])


def _check_selection(
    plan: BoardPlan, selection: Selection, variables: Collection[str]
) -> Iterator[str]:
    for name in selection.candidates:
        member = plan.members.get(name)
        if member is None:
            known = ", ".join(plan.members) or "none"
            yield f"Candidate {name!r} is not an agent of the board. Agents: {known}."
        elif any(each.spans for each in member.subscriptions):
            yield (
                f"Candidate {name!r} joins artifacts or takes batches, so it cannot be chosen for "
                "a single artifact. Remove the candidate, or its `join` and `batch`."
            )
    for name in (selection.about.variable, selection.exclude_variable):
        if name is not None and name not in variables:
            known = ", ".join(variables) or "none"
            yield (
                f"The selection reads variable {name!r}, which is not declared. Declared: {known}."
            )
    for function in (selection.about.function, selection.score):
        if isinstance(function, str):
            yield (
                f"The selection names function {function!r}. On a board, pass the function itself."
            )


def _check_assembly(
    assembly: Assembly, subscription: Subscription, variables: Collection[str], types: TypeRegistry
) -> Sequence[SourceProblem]:
    """Problems with an agent's sources when a subscription wakes it."""
    if subscription.context is not None:
        return ()
    if subscription.batch is not None:  # the number of inputs, and so the state, is not known
        return check_sources(assembly.sources, budget=assembly.budget)
    state = _state_type(subscription.types, types)
    return check_sources(assembly.sources, state, variables, budget=assembly.budget)


def _state_type(names: Sequence[str], types: TypeRegistry) -> Any:
    """The type of the state that sources read when artifacts of these types wake an agent."""
    if len(names) == 1:
        return types.model(names[0])
    models: dict[str, Any] = {}
    for name, count in Counter(names).items():
        model: Any = types.model(name)
        models[name.rpartition(".")[2]] = model if count == 1 else list[model]
    return make_dataclass("Inputs", models.items())


def _refuse(plan: BoardPlan, problems: Sequence[str]) -> None:
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"Board {plan.name!r} has problems:\n{lines}")


def _check_producers(
    plan: BoardPlan, subscription: Subscription, producers: Set[str]
) -> Iterator[str]:
    """Check that the agents in `from_agents` exist, and publish the types."""
    strangers = sorted(producers - plan.members.keys() - {USER})
    for name in strangers:
        yield _about_stranger(subscription, name, (*plan.members, USER))
    if not strangers and USER not in producers:
        for type in dict.fromkeys(subscription.types):
            yield from _check_type(plan, subscription, producers, type)


def _about_stranger(subscription: Subscription, name: str, known: Sequence[str]) -> str:
    hint = nearest(name, known)
    remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(known)}."
    return f"{subscription.id!r} waits for artifacts from unknown agent {name!r}. {remedy}"


def _check_type(
    plan: BoardPlan, subscription: Subscription, producers: Set[str], type: str
) -> Iterator[str]:
    makers = {name for name in producers if plan.members[name].product(type) is not None}
    own = subscription.agent
    if not makers:
        named = ", ".join(map(repr, sorted(producers)))
        yield (
            f"{subscription.id!r} waits for {type!r} from {named}, but none of these agents "
            "publishes it. Add `.publishes(…)` to one of them, or correct `from_agents`."
        )
    elif makers == {own} and not plan.members[own].wakes_itself:
        yield (
            f"{subscription.id!r} waits for {type!r} from {own!r} itself, which does not wake it. "
            "Call `.prevent_self_trigger(False)`, or correct `from_agents`."
        )
