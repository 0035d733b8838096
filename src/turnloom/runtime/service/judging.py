"""Artifacts are offered to those who subscribe to them; what each makes of it is put on record."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from turnloom.board.logic.matching import value_at
from turnloom.board.spec import Artifact, TypeRegistry
from turnloom.guards.spec import Selection
from turnloom.kernel.contained import named
from turnloom.kernel.values import canonical, said
from turnloom.reaction.events import ArtifactOffered, Verdict
from turnloom.reaction.logic.judging import (
    FORWARDED,
    KEY_FAILED,
    LATER,
    NOT_CHOSEN,
    TAKEN,
    WHERE_FAILED,
    judge,
)
from turnloom.reaction.logic.reacting import Reacting, expiring
from turnloom.reaction.spec import Subscription
from turnloom.reaction.spec.tray import Tray
from turnloom.runs.actions import Judge
from turnloom.runtime.service.calls import as_json
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.service.selections import Selections, Wanted
from turnloom.runtime.service.users import ask_condition, ask_user_code

# Seconds that a predicate, or what gives a key, may take.
DEADLINE = 5.0


async def offer(
    journal: Journal,
    workflow: Reacting,
    types: TypeRegistry,
    asked: Judge,
    selections: Selections,
) -> None:
    """Let those who subscribe to an artifact say whether it is for them, and put that on record."""
    tray: Tray = journal.state.progress
    artifact, now = tray.held[asked.artifact], journal.clock.now()
    tenant = journal.run.tenant
    to = [
        await _verdict(workflow, each, tenant, artifact, types=types, now=now)
        for each in workflow.subscribers(artifact.type)
        if asked.only in ("", each.id)
    ]
    if selections.own is not None and not asked.only:
        to = await _chosen(workflow, selections, selections.own, artifact, types, to)
    for verdict in to:
        if verdict.verdict == TAKEN:
            subscription = workflow.plan.subscription(verdict.subscription)
            for id, fact in [*expiring(journal.state, subscription, now)]:
                journal.record(id, fact, actor="clock")
    id = f"offer/{artifact.id}/{asked.only}" if asked.only else f"offer/{artifact.id}"
    journal.record(id, ArtifactOffered(artifact.id, now, tuple(to)))


async def _chosen(
    workflow: Reacting,
    selections: Selections,
    selection: Selection,
    artifact: Artifact,
    types: TypeRegistry,
    to: Sequence[Verdict],
) -> list[Verdict]:
    """The verdicts when of the candidates whom the artifact wakes only the chosen one is woken."""
    agents = [workflow.plan.subscription(each.subscription).agent for each in to]
    would = [each.verdict in (TAKEN, LATER) for each in to]
    woken = {agent for agent, wakes in zip(agents, would, strict=True) if wakes}
    among = [name for name in selection.candidates if name in woken]
    if not among:
        return [*to]
    about = types.read(artifact.type, artifact.payload)
    wanted = Wanted(among, about, artifact=artifact.id)
    made = await selections.choose(f"offer/{artifact.id}/selection", selection, wanted)
    passed_over = {*among} - {made.chosen}
    why = f"{made.chosen or 'nobody'} was chosen"
    return [
        Verdict(each.subscription, NOT_CHOSEN, why) if wakes and agent in passed_over else each
        for each, agent, wakes in zip(to, agents, would, strict=True)
    ]


async def _verdict(
    workflow: Reacting,
    subscription: Subscription,
    tenant: str,
    artifact: Artifact,
    *,
    types: TypeRegistry,
    now: datetime,
) -> Verdict:
    if subscription.spans and workflow.collects is None:  # another run decides for it
        return Verdict(subscription.id, FORWARDED)
    member = workflow.plan.members[subscription.agent]
    verdict = judge(subscription, member, tenant, artifact, now=now)
    if verdict.verdict != TAKEN:
        return verdict
    refused = await _refused(subscription, artifact, types)
    return refused or await _keyed(verdict, subscription, artifact, types)


async def _refused(
    subscription: Subscription, artifact: Artifact, types: TypeRegistry
) -> Verdict | None:
    """Why the subscription's own conditions do not hold, if they do not."""
    for number, predicate in enumerate(subscription.where, 1):
        try:
            value = types.read(artifact.type, artifact.payload)
            if not await ask_condition(predicate, value, deadline=DEADLINE):
                return Verdict(subscription.id, "where", f"condition {number} does not hold")
        except Exception as error:  # noqa: BLE001 - recorded: it is not the same as "no"
            what = f"condition {number} failed: {named(error)}: {said(error)}"
            return Verdict(subscription.id, WHERE_FAILED, what)
    return None


async def _keyed(
    verdict: Verdict, subscription: Subscription, artifact: Artifact, types: TypeRegistry
) -> Verdict:
    """The verdict with the key that the artifact is joined by."""
    if subscription.join is None:
        own = (artifact.correlation_id or "") if subscription.spans else ""
        return msgspec.structs.replace(verdict, key=own)
    by = subscription.join.by
    try:
        if isinstance(by, str):
            key: Any = value_at(artifact.payload, by)
        else:
            value = types.read(artifact.type, artifact.payload)
            key = as_json(await ask_user_code(by, value, deadline=DEADLINE))
    except Exception as error:  # noqa: BLE001 - recorded
        return Verdict(subscription.id, KEY_FAILED, f"{named(error)}: {said(error)}")
    if key is None:
        return Verdict(subscription.id, "no_key", "it has no key to be joined by")
    return msgspec.structs.replace(verdict, key=canonical(key))
