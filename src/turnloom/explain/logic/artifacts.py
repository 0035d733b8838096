"""Artifacts in a board's run: what each is, who was offered it, and what came of that."""

from collections.abc import Iterable, Sequence

from turnloom.board.events import ArtifactConsumed, ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.explain.logic.describe import words_for
from turnloom.explain.spec.board import ArtifactName, OfferEntry
from turnloom.guards.events import SelectionMade
from turnloom.log.spec import Event, Fact
from turnloom.reaction.events import (
    ArtifactOffered,
    ArtifactOpened,
    ArtifactReceived,
    ArtifactsGiven,
    BatchClosed,
    JoinExpired,
    RetryAsked,
)
from turnloom.reaction.logic.gates import TAKEN
from turnloom.reaction.logic.reacting import ReactionForm


def is_board(events: Sequence[Event]) -> bool:
    """Whether artifacts decide in a run whose turn it is."""
    return events[0].data.form == ReactionForm.form


class ArtifactHistory:
    """The artifacts that a run knows, and what happened to each of them in it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._whole: dict[str, Artifact] = {}
        self._brought: dict[str, Event] = {}
        self._offers: dict[str, list[Event]] = {}
        self._choices: dict[str, Event] = {}
        self._between: dict[tuple[str, str], list[Event]] = {}
        self._wishes: list[Event] = []
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        fact = event.data
        for artifact in _brought_by(fact):
            self._brought.setdefault(artifact.id, event)
            self._whole.setdefault(artifact.id, artifact)
        for id, subscription in _concerned_by(fact):
            self._between.setdefault((id, subscription), []).append(event)
        if isinstance(fact, ArtifactOffered):
            self._offers.setdefault(fact.artifact, []).append(event)
        elif isinstance(fact, SelectionMade):
            self._choices[fact.artifact] = event
        elif isinstance(fact, RetryAsked | BatchClosed):
            self._wishes.append(event)

    def whole(self, ids: Iterable[str]) -> list[Artifact]:
        """The artifacts of these ids, as far as the run has them."""
        return [self._whole[id] for id in ids if id in self._whole]

    def named(self, id: str) -> ArtifactName:
        """An artifact by its name; of one that the run does not have, nothing but the id."""
        if id not in self._whole:
            return ArtifactName(0, id, "", "", run="", parents=())
        found, seq = self._whole[id], self._brought[id].seq
        return ArtifactName(
            seq, id, found.type, found.produced_by, run=found.run or "", parents=found.parents
        )

    def offers(self, id: str) -> Sequence[Event]:
        """Where an artifact was offered."""
        return self._offers.get(id, ())

    def choice(self, id: str) -> Event | None:
        """Where a guard chose one of those whom an artifact would have woken."""
        return self._choices.get(id)

    def verdicts(self, offer: Event) -> tuple[OfferEntry, ...]:
        """What each subscription made of an artifact that was offered, and what came of that."""
        fact: ArtifactOffered = offer.data
        found: list[OfferEntry] = []
        for each in fact.to:
            between = self._between.get((fact.artifact, each.subscription), ())
            then = next((event for event in between if event.seq > offer.seq), None)
            said = (each.subscription, each.verdict, words_for(each, then), each.opens)
            found.append(OfferEntry(offer.seq, *said))
        return tuple(found)

    def taken(self, consumed: Event) -> dict[str, Event]:
        """Where each artifact was offered that a subscription took."""
        fact: ArtifactConsumed = consumed.data
        return {
            id: offer
            for id in fact.artifacts
            for offer in self.offers(id)
            if offer.seq < consumed.seq and _takes(offer.data, fact.subscription)
        }

    def leading(self, event: Event) -> Event | None:
        """What led to an offer, or to it that a subscription took what it has; of other events, the
        log says it."""
        match event.data:
            case ArtifactOpened(artifact=id) | SelectionMade(artifact=id):
                return self._brought.get(id)
            case ArtifactOffered():
                return self._offering(event, event.data)
            case ArtifactConsumed():
                return self._completing(event, event.data)
            case _:
                return None

    def _offering(self, offer: Event, fact: ArtifactOffered) -> Event | None:
        """What an artifact was offered for: that it came, that it can be seen now, or that a guard
        chose who gets it."""
        opened = (
            event
            for each in fact.to
            for event in self._between.get((fact.artifact, each.subscription), ())
            if isinstance(event.data, ArtifactOpened) and event.seq < offer.seq
        )
        choice = self.choice(fact.artifact)
        led = [*opened, *filter(None, [choice])]
        return max(led, key=_seq, default=self._brought.get(fact.artifact))

    def _completing(self, consumed: Event, fact: ArtifactConsumed) -> Event | None:
        """The offer that completed a set, or that its batch was closed; for what failed before, the
        wish to try again; for what was given as it is, that."""
        wishes = [event for event in self._wishes if event.seq < consumed.seq]
        if fact.retry_of:
            retries = (event for event in wishes if _is_retry(event, fact))
            return max(retries, key=_seq, default=None)
        completing = max(self.taken(consumed).values(), key=_seq, default=None)
        if completing is None:
            return self._brought.get(fact.artifacts[0])
        closings = (event for event in wishes if _is_closing(event, fact))
        return max((completing, *closings), key=_seq)


def _brought_by(fact: Fact) -> Sequence[Artifact]:
    """The artifacts that a run has from a fact on."""
    match fact:
        case ArtifactPublished() | ArtifactMade() | ArtifactReceived():
            return (fact.artifact,)
        case ArtifactsGiven():
            return fact.artifacts
        case _:
            return ()


def _concerned_by(fact: Fact) -> Sequence[tuple[str, str]]:
    """The artifacts to which something happened, and with which subscription."""
    match fact:
        case ArtifactOpened():
            return ((fact.artifact, fact.subscription),)
        case ArtifactConsumed() | JoinExpired():
            return [(id, fact.subscription) for id in fact.artifacts]
        case _:
            return ()


def _seq(event: Event) -> int:
    return event.seq


def _takes(fact: ArtifactOffered, subscription: str) -> bool:
    return any(each.subscription == subscription and each.verdict == TAKEN for each in fact.to)


def _is_retry(event: Event, taken: ArtifactConsumed) -> bool:
    return isinstance(event.data, RetryAsked) and event.data.turn == taken.retry_of


def _is_closing(event: Event, taken: ArtifactConsumed) -> bool:
    return isinstance(event.data, BatchClosed) and event.data.subscription == taken.subscription
