"""Match artifacts against subscriptions, and hold them until a join or batch is complete."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain

from turnloom.board.logic.matching import tagged, visible_from
from turnloom.board.spec import Artifact
from turnloom.reaction.events import SubscriptionVerdict
from turnloom.reaction.spec import Member, Subscription
from turnloom.reaction.spec.state import Group, Pending, WaitingArtifact

# The ids of artifacts that an agent gets together.
Set = tuple[str, ...]


def arrive(
    pending: Pending, subscription: Subscription, id: str, type: str, key: str, at: datetime
) -> list[Set]:
    """Add an artifact to those with its key; the sets that are complete now."""
    pending.arrived += 1
    group = pending.groups.setdefault(key, Group())
    group.bins.setdefault(type, []).append(WaitingArtifact(id, at, pending.arrived))
    wanted = Counter(subscription.types)
    if any(len(group.bins.get(each, ())) < number for each, number in wanted.items()):
        return []
    taken = tuple(_take(group, each) for each in subscription.types)
    _settle(pending, key)
    if subscription.batch is None:
        return [taken]
    pending.since = pending.since or at
    pending.sets.append(taken)
    size = subscription.batch.size
    return [close(pending)] if size is not None and len(pending.sets) >= size else []


def close(pending: Pending) -> Set:
    """Take the batch as it is, and empty it."""
    taken = tuple(chain.from_iterable(pending.sets))
    pending.sets, pending.since = [], None
    return taken


def collected(pending: Pending, subscription: Subscription) -> tuple[int, int | None]:
    """The number of artifacts in the oldest set, and the number required; for a batch, of complete
    sets."""
    batch = subscription.batch
    if batch is not None and (pending.sets or not pending.groups):
        return len(pending.sets), batch.size
    group = next(iter(pending.groups.values()), Group())
    wanted = Counter(subscription.types)
    there = sum(min(len(group.bins.get(type, ())), number) for type, number in wanted.items())
    return there, len(subscription.types)


def drop(pending: Pending, key: str, ids: Set) -> None:
    """Remove these artifacts from those with a key."""
    group = pending.groups[key]
    for type, bin in [*group.bins.items()]:
        group.bins[type] = [entry for entry in bin if entry.id not in ids]
        if not group.bins[type]:
            del group.bins[type]
    _settle(pending, key)


def outdated(
    pending: Pending, subscription: Subscription, now: datetime, coming: int = 0
) -> Iterator[tuple[str, Set]]:
    """The artifacts that have waited too long, by key, once `coming` more have arrived."""
    within = subscription.join.within if subscription.join else None
    if within is None:
        return
    for key, group in pending.groups.items():
        number = pending.arrived + coming
        over = tuple(each.id for each in group.entries if _is_over(each, within, now, number))
        if not over:
            return  # the groups of other keys are younger
        yield key, over


def _is_over(entry: WaitingArtifact, within: timedelta | int, now: datetime, number: int) -> bool:
    if isinstance(within, timedelta):
        return entry.at + within <= now
    return number - entry.number > within


def is_due(pending: Pending, subscription: Subscription, now: datetime) -> bool:
    """Whether a batch has timed out."""
    closes = closing(pending, subscription)
    return closes is not None and closes <= now


def closing(pending: Pending, subscription: Subscription) -> datetime | None:
    """When a batch times out."""
    batch, since = subscription.batch, pending.since
    if batch is None or batch.timeout is None or since is None:
        return None
    return since + batch.wait


def expiry(pending: Pending, subscription: Subscription) -> datetime | None:
    """When the oldest waiting artifact expires."""
    within = subscription.join.within if subscription.join else None
    if not isinstance(within, timedelta) or not pending.groups:
        return None
    return next(iter(pending.groups.values())).first.at + within


def _take(group: Group, type: str) -> str:
    bin = group.bins[type]
    taken = bin.pop(0)
    if not bin:
        del group.bins[type]
    return taken.id


def _settle(pending: Pending, key: str) -> None:
    """Sort the groups by their oldest artifact, after one of them lost its oldest."""
    if not pending.groups[key].bins:
        del pending.groups[key]
    elif len(pending.groups) > 1:
        by_age = sorted(pending.groups.items(), key=lambda each: each[1].first.number)
        pending.groups = dict(by_age)


TAKEN = "taken"
FORWARDED = "forwarded"
LATER = "later"
NOT_CHOSEN = "not_chosen"
# User code failed, so there is no verdict.
WHERE_FAILED, KEY_FAILED = FAILED = ("where_failed", "key_failed")


def judge(
    subscription: Subscription, member: Member, tenant: str, artifact: Artifact, now: datetime
) -> SubscriptionVerdict:
    """The verdict of a subscription on an artifact of one of its types, before its own functions
    are called."""

    def verdict(what: str, detail: str = "", opens: datetime | None = None) -> SubscriptionVerdict:
        return SubscriptionVerdict(subscription.id, what, detail, opens=opens)

    producer = artifact.produced_by
    if producer == member.agent.name and not member.wakes_itself:
        return verdict("own", "published by the agent itself")
    if subscription.from_agents is not None and producer not in subscription.from_agents:
        return verdict("from_agents", f"made by {producer}")
    if subscription.tags is not None and not tagged(subscription.tags, artifact.tags):
        return verdict("tags", f"tagged {', '.join(sorted(artifact.tags)) or 'with nothing'}")
    opens = visible_from(artifact.visibility, member.reader(tenant))
    if opens is None:
        return verdict("not_visible")
    return verdict(TAKEN) if opens <= now else verdict(LATER, opens=opens)
