"""What is wrong with a board beyond what each declaration says by itself."""

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

# What has nothing inside it that a path could lead to.
SCALARS = (str, int, float, bool)


def check_plan(plan: BoardPlan) -> list[str]:
    """What of a board can never work, whatever is published: a sentence for each."""
    return [
        problem
        for member in plan.members.values()
        for subscription in member.subscriptions
        if subscription.from_agents is not None
        for problem in _check_producers(plan, subscription, subscription.from_agents)
    ]


def refuse_problems(plan: BoardPlan) -> None:
    """Refuse a board on which something can never work.

    Raises:
        UsageError: there is such a thing; all of them are listed.
    """
    _refuse(plan, check_plan(plan))


def refuse_strangers(plan: BoardPlan, tenant: str) -> None:
    """Refuse a board of a tenant with agents that are declared to be of another.

    Raises:
        UsageError: there is such an agent; all of them are listed.
    """
    _refuse(
        plan,
        [
            f"Agent {name!r} is declared to be of tenant {member.tenant!r}, and the board is of "
            f"{tenant!r}. Drop `.tenant(…)`, or make the board with `app_id={member.tenant!r}`."
            for name, member in plan.members.items()
            if member.tenant not in ("", tenant)
        ],
    )


def refuse_sources(plan: BoardPlan, variables: Collection[str], types: TypeRegistry) -> None:
    """Refuse a board on which sources of context name what there is not.

    Raises:
        DefinitionError: one does; `diagnostics` has all of them.
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
    """Refuse a board that joins by what its artifacts do not have.

    Raises:
        UsageError: one of its joins does; all of them are listed.
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
    """The types of what a payload has, by the names that it has there."""
    return {
        each.serialization_alias or name: each.annotation
        for name, each in model.model_fields.items()
    }


def _may_have(model: type[BaseModel], names: Sequence[str]) -> bool:
    """Whether payloads of a type may have something under these names; what cannot be told may."""
    if issubclass(model, RootModel) or model.model_config.get("extra") == "allow":
        return True
    first, *others = names
    fields = _fields(model)
    return first in fields and not (others and fields[first] in SCALARS)


def refuse_guards(plan: BoardPlan, guards: Guards, variables: Collection[str]) -> None:
    """Refuse a board whose guards name what there is not.

    Raises:
        UsageError: they do; all of it is listed.
    """
    if guards.selection is not None:
        _refuse(plan, [*_check_selection(plan, guards.selection, variables)])


def _check_selection(
    plan: BoardPlan, selection: Selection, variables: Collection[str]
) -> Iterator[str]:
    for name in selection.candidates:
        member = plan.members.get(name)
        if member is None:
            known = ", ".join(plan.members) or "nobody"
            yield f"Candidate {name!r} is not on the board. There is {known}."
        elif any(each.spans for each in member.subscriptions):
            yield (
                f"Candidate {name!r} joins artifacts or takes batches, and whom one artifact wakes "
                "is not known then. Leave it out, or let it consume one by one."
            )
    for name in (selection.about.variable, selection.exclude_variable):
        if name is not None and name not in variables:
            known = ", ".join(variables) or "none"
            yield f"The selection asks for variable {name!r}, which is not declared: {known}."
    for function in (selection.about.function, selection.score):
        if isinstance(function, str):
            yield f"The selection names function {function!r}. Give the function itself on a board."


def _check_assembly(
    assembly: Assembly, subscription: Subscription, variables: Collection[str], types: TypeRegistry
) -> Sequence[SourceProblem]:
    """What is wrong with sources when a subscription wakes their agent."""
    if subscription.context is not None:
        return ()
    if subscription.batch is not None:  # how many it will be is not known, nor so the state
        return check_sources(assembly.sources, budget=assembly.budget)
    state = _state_type(subscription.types, types)
    return check_sources(assembly.sources, state, variables, budget=assembly.budget)


def _state_type(names: Sequence[str], types: TypeRegistry) -> Any:
    """The type of what sources read when artifacts of these types wake an agent."""
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
        raise UsageError(f"Board {plan.name!r} does not pass its check:\n{lines}")


def _check_producers(
    plan: BoardPlan, subscription: Subscription, producers: Set[str]
) -> Iterator[str]:
    """Whether those whose artifacts are waited for exist, and publish them."""
    strangers = sorted(producers - plan.members.keys() - {USER})
    for name in strangers:
        yield _about_stranger(subscription, name, (*plan.members, USER))
    if not strangers and USER not in producers:
        for type in dict.fromkeys(subscription.types):
            yield from _check_type(plan, subscription, producers, type)


def _about_stranger(subscription: Subscription, name: str, known: Sequence[str]) -> str:
    hint = nearest(name, known)
    remedy = f"Did you mean {hint!r}?" if hint else f"There is {', '.join(known)}."
    return f"{subscription.id!r} waits for artifacts from {name!r}, who is not there. {remedy}"


def _check_type(
    plan: BoardPlan, subscription: Subscription, producers: Set[str], type: str
) -> Iterator[str]:
    makers = {name for name in producers if plan.members[name].product(type) is not None}
    own = subscription.agent
    if not makers:
        named = ", ".join(map(repr, sorted(producers)))
        yield (
            f"{subscription.id!r} waits for {type!r} from {named}, where nobody publishes it. "
            "Let one of them publish it, or correct `from_agents`."
        )
    elif makers == {own} and not plan.members[own].wakes_itself:
        yield (
            f"{subscription.id!r} waits for {type!r} from {own!r} itself, which does not wake it. "
            "Say `.prevent_self_trigger(False)`, or correct `from_agents`."
        )
