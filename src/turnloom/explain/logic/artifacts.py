"""The history of artifacts in a board's run: origins, offers and consumptions."""

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
    """Whether the run is that of a board."""
    return events[0].data.form == ReactionForm.form


class ArtifactHistory:
    """The artifacts of a run and the events about each of them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._whole: dict[str, Artifact] = {}
        self._origins: dict[str, Event] = {}
        self._offers: dict[str, list[Event]] = {}
        self._choices: dict[str, Event] = {}
        self._between: dict[tuple[str, str], list[Event]] = {}
        self._requests: list[Event] = []
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        fact = event.data
        for artifact in _added_by(fact):
            self._origins.setdefault(artifact.id, event)
            self._whole.setdefault(artifact.id, artifact)
        for id, subscription in _concerned_by(fact):
            self._between.setdefault((id, subscription), []).append(event)
        if isinstance(fact, ArtifactOffered):
            self._offers.setdefault(fact.artifact, []).append(event)
        elif isinstance(fact, SelectionMade):
            self._choices[fact.artifact] = event
        elif isinstance(fact, RetryAsked | BatchClosed):
            self._requests.append(event)

    @property
    def all(self) -> Sequence[Artifact]:
        """The artifacts of the run, in the order of their arrival."""
        return [*self._whole.values()]

    def whole(self, ids: Iterable[str]) -> list[Artifact]:
        """The known artifacts among these ids."""
        return [self._whole[id] for id in ids if id in self._whole]

    def named(self, id: str) -> ArtifactName:
        """Identity and origin of an artifact; only the id if the run does not have it."""
        if id not in self._whole:
            return ArtifactName(0, id, "", "", run="", parents=())
        found, seq = self._whole[id], self._origins[id].seq
        return ArtifactName(
            seq, id, found.type, found.produced_by, run=found.run or "", parents=found.parents
        )

    def origin(self, id: str) -> Event | None:
        """The event that put an artifact into the run; None if the run does not have it."""
        return self._origins.get(id)

    def offers(self, id: str) -> Sequence[Event]:
        """The events that offered an artifact."""
        return self._offers.get(id, ())

    def choice(self, id: str) -> Event | None:
        """The selection by a guard among the subscribers of an artifact."""
        return self._choices.get(id)

    def verdicts(self, offer: Event) -> tuple[OfferEntry, ...]:
        """The verdicts of all subscriptions on an offered artifact, with their effects."""
        fact: ArtifactOffered = offer.data
        found: list[OfferEntry] = []
        for each in fact.to:
            between = self._between.get((fact.artifact, each.subscription), ())
            then = next((event for event in between if event.seq > offer.seq), None)
            said = (each.subscription, each.verdict, words_for(each, then), each.opens)
            found.append(OfferEntry(offer.seq, *said))
        return tuple(found)

    def taken(self, consumed: Event) -> dict[str, Event]:
        """The offer of each artifact that a subscription consumed."""
        fact: ArtifactConsumed = consumed.data
        return {
            id: offer
            for id in fact.artifacts
            for offer in self.offers(id)
            if offer.seq < consumed.seq and _takes(offer.data, fact.subscription)
        }

    def leading(self, event: Event) -> Event | None:
        """The cause of an offer or consumption; None for other events, whose cause is in the
        log."""
        match event.data:
            case ArtifactOpened(artifact=id) | SelectionMade(artifact=id):
                return self._origins.get(id)
            case ArtifactOffered():
                return self._offering(event, event.data)
            case ArtifactConsumed():
                return self._completing(event, event.data)
            case _:
                return None

    def _offering(self, offer: Event, fact: ArtifactOffered) -> Event | None:
        """The cause of an offer: arrival of the artifact, its visibility, or a selection."""
        opened = (
            event
            for each in fact.to
            for event in self._between.get((fact.artifact, each.subscription), ())
            if isinstance(event.data, ArtifactOpened) and event.seq < offer.seq
        )
        choice = self.choice(fact.artifact)
        led = [*opened, *filter(None, [choice])]
        return max(led, key=_seq, default=self._origins.get(fact.artifact))

    def _completing(self, consumed: Event, fact: ArtifactConsumed) -> Event | None:
        """The event that completed a set: an offer, the close of a batch, a retry request, or the
        arrival of artifacts given directly."""
        requests = [event for event in self._requests if event.seq < consumed.seq]
        if fact.retry_of:
            retries = (event for event in requests if _is_retry(event, fact))
            return max(retries, key=_seq, default=None)
        completing = max(self.taken(consumed).values(), key=_seq, default=None)
        if completing is None:
            return self._origins.get(fact.artifacts[0])
        closings = (event for event in requests if _is_closing(event, fact))
        return max((completing, *closings), key=_seq)


def _added_by(fact: Fact) -> Sequence[Artifact]:
    """The artifacts that a fact adds to the run."""
    match fact:
        case ArtifactPublished() | ArtifactMade() | ArtifactReceived():
            return (fact.artifact,)
        case ArtifactsGiven():
            return fact.artifacts
        case _:
            return ()


def _concerned_by(fact: Fact) -> Sequence[tuple[str, str]]:
    """The pairs of artifact and subscription that a fact is about."""
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
