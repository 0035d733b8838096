"""Where the work went on a board, from the log: offers with their verdicts, sets and what completed
them."""

from collections.abc import Sequence

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import Artifacts
from turnloom.explain.logic.selection import selected
from turnloom.explain.logic.words import words
from turnloom.explain.spec.reaction import Arrived, ConsumptionExplained, OfferExplained
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event
from turnloom.reaction.events import ArtifactOffered, ArtifactReceived, ArtifactsGiven


def explain_reaction(events: Sequence[Event], seq: int) -> OfferExplained | ConsumptionExplained:
    """Who was offered an artifact, or why a subscription took what it took: at that event, for the
    artifact that came with it, or at the next such event after it.

    Raises:
        UsageError: there is no such event, and none after it.
    """
    artifacts = Artifacts(events)
    at = next((event for event in events if event.seq == seq), None)
    if at is not None and isinstance(at.data, ArtifactPublished | ArtifactReceived):
        return _came(at, artifacts)
    routes = [e for e in events if isinstance(e.data, ArtifactOffered | ArtifactConsumed)]
    found = next((event for event in routes if event.seq >= seq), None)
    if found is None or seq < 1:
        known = ", ".join(str(event.seq) for event in routes) or "none"
        raise UsageError(f"Nothing was offered or taken at seq {seq} or after it. It was: {known}.")
    if isinstance(found.data, ArtifactOffered):
        return _offer(found, seq, artifacts)
    return _consumption(events, found, seq, artifacts)


def _came(event: Event, artifacts: Artifacts) -> OfferExplained:
    """What became of an artifact that was published, or came from another run."""
    id = event.data.artifact.id
    for offer in artifacts.offers(id):
        return _offer(offer, event.seq, artifacts)
    return OfferExplained(event.run, event.seq, event.seq, artifacts.named(id), False, ())


def _offer(offer: Event, asked: int, artifacts: Artifacts) -> OfferExplained:
    id = offer.data.artifact
    verdicts, chosen = artifacts.verdicts(offer), artifacts.choice(id)
    return OfferExplained(
        offer.run,
        offer.seq,
        asked,
        artifacts.named(id),
        True,
        verdicts,
        selected(chosen, chosen.data) if chosen else None,
    )


def _consumption(
    events: Sequence[Event], consumed: Event, asked: int, artifacts: Artifacts
) -> ConsumptionExplained:
    fact: ArtifactConsumed = consumed.data
    offers, leading = artifacts.taken(consumed), artifacts.leading(consumed)
    arrived = [
        Arrived(artifacts.named(id), offer.seq if offer else 0, offer.at if offer else None)
        for id in fact.artifacts
        for offer in (offers.get(id),)
    ]
    return ConsumptionExplained(
        consumed.run,
        consumed.seq,
        asked,
        fact.agent,
        fact.subscription,
        fact.turn,
        fact.run,
        tuple(arrived),
        leading.seq if leading else 0,
        _because(fact, leading, events[0].data),
    )


def _because(fact: ArtifactConsumed, leading: Event | None, started: RunStarted) -> str:
    """What completed a set, in words."""
    match leading.data if leading else None:
        case ArtifactOffered(artifact=id) if len(fact.artifacts) > 1:
            return f"{id} completed the set"
        case ArtifactOffered(artifact=id):
            return f"{id} was offered, and is all that was waited for"
        case ArtifactsGiven(subscription=""):
            return "somebody gave it to the agent directly"
        case ArtifactsGiven():
            return f"the set was collected in run {started.parents[0]}"
        case _:
            return words(leading) if leading else "the log does not say"
