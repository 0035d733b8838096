"""The plan of a board, to which its runs are pinned: its text, and the diff of two plans."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from turnloom.agents.logic.plans import (
    PlanWriter,
    as_text,
    beside_data,
    data_of,
    parts_diff,
    schema_digest,
    without,
    without_descriptions,
)
from turnloom.assembly.logic.descriptions import by_agent, describe_assembly, describe_provider
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.providers import ChosenProvider
from turnloom.assembly.spec.sources import Assembly, Share
from turnloom.board.spec import TypeRegistry
from turnloom.errors import UsageError
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.values import Json
from turnloom.reaction.spec import (
    Batch,
    BoardPlan,
    ContextFilter,
    Join,
    Member,
    Product,
    Subscription,
)

# Types written field by field. Everything else that is not data is code, written by its name.
_WRITTEN = PlanWriter(
    (
        Assembly,
        Batch,
        Budget,
        ChosenProvider,
        ContextFilter,
        ContextFormat,
        Join,
        Product,
        Share,
        Subscription,
    )
)


def make_plan(
    name: str,
    members: Iterable[Member],
    limit: int,
    types: TypeRegistry,
    beside: Mapping[str, Any] | None = None,
) -> BoardPlan:
    """The plan of a board with these agents, and its other declarations, by part.

    Raises:
        UsageError: two agents have one name, or a type has no JSON Schema.
    """
    by_name = _by_name(members)
    written: dict[str, Json] = {
        "board": name,
        "limit": limit,
        "agents": {each: _agent_data(member) for each, member in by_name.items()},
        "types": {each: schema_digest(types.model(each), each) for each in _types(by_name)},
        **beside_data(beside or {}, _WRITTEN),
    }
    text = as_text(written)
    return BoardPlan(
        name=name,
        members=by_name,
        limit=limit,
        text=text,
        digest=fingerprint(text),
        by_type=_by_type(by_name),
    )


def describe_plan(plan: BoardPlan) -> str:
    """The context provider of each agent of a board, in words."""
    return by_agent({name: _described(member) for name, member in plan.members.items()})


def _described(member: Member) -> str:
    own = [
        f"{each.id}: {describe_provider(each.context)}"
        for each in member.subscriptions
        if each.context is not None
    ]
    return "\n".join([_described_context(member.context), *own])


def _described_context(context: ChosenProvider | ContextFilter | Assembly | None) -> str:
    match context:
        case Assembly():
            return describe_assembly(context)
        case ChosenProvider():
            return describe_provider(context)
        case ContextFilter():
            parts = data_of(context, _WRITTEN).items()
            return f"artifacts by filter: {', '.join(f'{key}={value}' for key, value in parts)}"
        case None:
            return "artifacts with the correlation id"


def subscription_digest(plan: BoardPlan, subscription: Subscription) -> str:
    """The digest of one subscription of a board, independent of its position among others.

    Runs that collect for it live long: they are pinned to this digest, so that other changes of the
    board do not affect them.
    """
    return fingerprint(plan.name, as_text(data_of(subscription, _WRITTEN, "id")))


def decide_alike(old_text: str, new_text: str) -> bool:
    """Whether two plans, given by their texts, differ in descriptions at most: the frames of turns
    record those."""
    return _deciding(old_text) == _deciding(new_text)


def _deciding(text: str) -> Json:
    plan = without_descriptions(json.loads(text))
    without(plan.get("agents"), "system_message")
    return plan


def plan_diff(old_text: str, new_text: str) -> str:
    """The diff of the texts of two plans, part by part; empty if they are equal."""
    return parts_diff(_parts(old_text), _parts(new_text))


def _by_name(members: Iterable[Member]) -> dict[str, Member]:
    found: dict[str, Member] = {}
    for member in members:
        name = member.agent.name
        if name in found:
            raise UsageError(f"Two agents of the board have the name {name!r}. Rename one of them.")
        found[name] = member
    return found


def _by_type(members: Mapping[str, Member]) -> dict[str, tuple[Subscription, ...]]:
    found: dict[str, list[Subscription]] = {}
    for member in members.values():
        for each in member.subscriptions:
            for type in dict.fromkeys(each.types):
                found.setdefault(type, []).append(each)
    return {
        type: tuple(sorted(subscriptions, key=lambda each: -each.priority))
        for type, subscriptions in found.items()
    }


def _types(members: Mapping[str, Member]) -> list[str]:
    consumed = {type for each in members.values() for s in each.subscriptions for type in s.types}
    return sorted(consumed | {p.type for each in members.values() for p in each.products})


def _agent_data(member: Member) -> Json:
    return data_of(member.agent, _WRITTEN, "name") | data_of(member, _WRITTEN, "agent")


def _parts(text: str) -> dict[str, Json]:
    """The plan in parts, so that the diff shows the name of the agent."""
    plan: dict[str, Json] = json.loads(text)
    agents: dict[str, Json] = plan["agents"]
    named = {f"agent {name!r}": written for name, written in agents.items()}
    return {"board": plan | {"agents": list(agents)}, **named}


def collects(plan: BoardPlan, subscription: str, definition: str) -> bool:
    """Whether the plan still has the subscription that a run collects for."""
    member = plan.members.get(subscription.rpartition("#")[0])
    found = [each for each in member.subscriptions if each.id == subscription] if member else []
    return any(subscription_digest(plan, each) == definition for each in found)
