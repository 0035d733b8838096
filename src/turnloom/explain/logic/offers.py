"""Why a subscription did not take an artifact, and what would have made it take it."""

import json
from collections.abc import Iterator, Mapping, Set
from datetime import datetime
from itertools import chain, combinations
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.spec import Agent
from turnloom.board.logic.matching import tagged, visible_from
from turnloom.board.spec import Artifact, TagFilter
from turnloom.explain.spec.board import OfferEntry
from turnloom.explain.spec.route import ChangedValue, FailedPart
from turnloom.kernel.values import Json, as_array, as_object
from turnloom.reaction.logic.gates import TAKEN, judge
from turnloom.reaction.spec import Member, Subscription

# The parts of a subscription that compare fields of the artifact.
PRODUCER, TAGS, VISIBLE = "produced_by", "tags", "visible"

UNKNOWN = "not known: conditions of the subscription were not evaluated"


class PlannedSubscription(NamedTuple):
    """A subscription as its plan declares it, without code; `conditions` is their number."""

    subscription: Subscription
    member: Member
    conditions: int


def planned(plan: str, id: str) -> PlannedSubscription | None:
    """A subscription in the text of a plan."""
    name = id.rpartition("#")[0]
    agents = as_object(json.loads(plan).get("agents")) if plan else None
    written = as_object((agents or {}).get(name)) or {}
    for each in as_array(written.get("subscriptions")) or ():
        found = as_object(each) or {}
        if found.get("id") == id:
            conditions = len(as_array(found.get("where")) or ())
            return PlannedSubscription(_subscription(found), _member(name, written), conditions)
    return None


def _subscription(written: Mapping[str, Any]) -> Subscription:
    tags, producers = written.get("tags"), written.get("from_agents")
    return Subscription(
        id=written["id"],
        agent=written["agent"],
        types=tuple(written["types"]),
        from_agents=None if producers is None else frozenset(producers),
        tags=None if tags is None else TagFilter.model_validate(tags, strict=False),
    )


def _member(name: str, written: Mapping[str, Any]) -> Member:
    labels: Set[str] = frozenset(written.get("labels", ()))
    tenant: str = written.get("tenant", "")
    wakes_itself = bool(written.get("wakes_itself", False))
    return Member(agent=Agent(name=name), labels=labels, tenant=tenant, wakes_itself=wakes_itself)


class OfferedArtifact(NamedTuple):
    """An artifact that was offered on a board of a tenant, and when."""

    artifact: Artifact
    tenant: str
    at: datetime


def weighed(entry: OfferEntry, offered: OfferedArtifact, plan: str) -> OfferEntry:
    """A refusal with the parts that failed, and the smallest set of values that the subscription
    would have taken."""
    found = planned(plan, entry.subscription) if entry.refused else None
    if found is None:
        return entry
    condition = _condition(entry)
    failed = (*_failed(found, offered), *condition)
    is_last = bool(condition) and condition[0].variable == f"condition {found.conditions}"
    if condition:
        needed = (ChangedValue(condition[0].variable, False, True),) if is_last else ()
    else:
        needed = next(_enough(found, offered), ())
    unknown = UNKNOWN if found.conditions and not is_last else ""
    return msgspec.structs.replace(
        entry, failed=failed, needed=() if unknown else needed, unknown=unknown
    )


def _condition(entry: OfferEntry) -> tuple[FailedPart, ...]:
    """The condition that was evaluated and does not hold."""
    if entry.verdict != "where":
        return ()
    number = entry.what.partition("condition ")[2].partition(" ")[0]
    return (FailedPart(f"condition {number}", True, False),)


def _failed(found: PlannedSubscription, offered: OfferedArtifact) -> Iterator[FailedPart]:
    """Every declared part that does not hold for the artifact."""
    subscription, member, _ = found
    artifact, tenant, at = offered
    producer, tags = artifact.produced_by, sorted(artifact.tags)
    wanted = subscription.from_agents
    if producer == member.agent.name and not member.wakes_itself:
        yield FailedPart(PRODUCER, "another agent", producer)
    elif wanted is not None and producer not in wanted:
        yield FailedPart(PRODUCER, _one_of(wanted), producer)
    if subscription.tags is not None and not tagged(subscription.tags, artifact.tags):
        yield FailedPart(TAGS, _one_of(subscription.tags.include or ()), _listed(tags))
    opens = visible_from(artifact.visibility, member.reader(tenant))
    if opens is None or opens > at:
        yield FailedPart(VISIBLE, True, False)


def _one_of(names: Set[str] | tuple[str, ...]) -> Json:
    listed = sorted(names)
    return listed[0] if len(listed) == 1 else _listed(listed)


def _listed(names: list[str]) -> Json:
    return [*names]


def _enough(
    found: PlannedSubscription, offered: OfferedArtifact
) -> Iterator[tuple[ChangedValue, ...]]:
    """Changes of one field, then of two, with which the subscription takes the artifact."""
    subscription, member, _ = found
    artifact, tenant, at = offered
    changes = [*_producers(subscription, artifact), *_tag_sets(subscription, artifact)]
    for some in chain(combinations(changes, 1), combinations(changes, 2)):
        fields = {change.variable: change.becomes for change in some}
        if len(fields) < len(some):
            continue
        if TAGS in fields:
            fields[TAGS] = frozenset(fields[TAGS])
        other = msgspec.structs.replace(artifact, **fields)
        if judge(subscription, member, tenant, other, now=at).verdict == TAKEN:
            yield some


def _producers(subscription: Subscription, artifact: Artifact) -> Iterator[ChangedValue]:
    for name in sorted(subscription.from_agents or ()):
        yield ChangedValue(PRODUCER, artifact.produced_by, name)


def _tag_sets(subscription: Subscription, artifact: Artifact) -> Iterator[ChangedValue]:
    """Tags with one of those that are wanted, then with all, without those that are not."""
    if (wanted := subscription.tags) is None:
        return
    kept, was = artifact.tags - wanted.exclude, _listed(sorted(artifact.tags))
    include = sorted(wanted.include or ())
    for more in ([], *([each] for each in include), include):
        yield ChangedValue(TAGS, was, _listed(sorted({*kept, *more})))
