"""What boards add to what happened in a turn: context, artifacts, and which try counts."""

from collections.abc import Iterator, Sequence

from turnloom.assembly.events import ContextGathered, ProviderFailed
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.explain.logic.artifacts import Artifacts
from turnloom.explain.spec.board import Chose, Consulted, Gathered, Published, Unprovided
from turnloom.log.spec import Event
from turnloom.reaction.events import SampleChosen

BoardStep = Gathered | Published | Chose


def board_step(events: Sequence[Event], artifacts: Artifacts) -> BoardStep | None:
    """The step that events of one call are, if they have to do with a board or with providers."""
    first = events[0]
    match first.data:
        case ContextGathered() | ProviderFailed():
            return _gathered(events)
        case ArtifactPublished(artifact=artifact):
            return _published(first, artifact, artifacts)
        case ArtifactMade(artifact=artifact):
            return Published(first.seq, artifacts.named(artifact.id), True, ())
        case SampleChosen(scores=scores, chosen=chosen):
            return Chose(first.seq, chosen + 1, scores)
        case _:
            return None


def _gathered(events: Sequence[Event]) -> Gathered:
    last, within = events[-1], tuple(_consulted(events))
    if isinstance(last.data, ProviderFailed):
        return Gathered(events[0].seq, last.data.provider, "failed", 0, 0, False, within)
    fact: ContextGathered = last.data
    return Gathered(
        events[0].seq,
        fact.provider,
        "gathered",
        len(fact.items),
        seconds_of(fact),
        fact.fallback,
        within if len(within) > 1 else (),
    )


def seconds_of(fact: ContextGathered) -> float:
    """How long the gathering took; who is asked inside of another takes of that one's time."""
    return sum(each.micros for each in fact.calls if "/" not in each.provider) / 1_000_000


def _consulted(events: Sequence[Event]) -> Iterator[Consulted | Unprovided]:
    for event in events:
        match event.data:
            case ProviderFailed(provider=provider, error=error, message=message, fallback=fallback):
                yield Unprovided(event.seq, provider, error, message, fallback)
            case ContextGathered(calls=calls):
                for call in calls:
                    said = (call.provider, call.items, call.micros, call.error)
                    yield Consulted(event.seq, *said)
            case _:
                pass


def _published(event: Event, artifact: Artifact, artifacts: Artifacts) -> Published:
    offers = artifacts.offers(artifact.id)
    within = tuple(each for offer in offers for each in artifacts.verdicts(offer))
    return Published(event.seq, artifacts.named(artifact.id), False, within)
