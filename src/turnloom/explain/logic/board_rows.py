"""The rows of a timeline that boards and providers add."""

from turnloom.assembly.events import ContextGathered, ProviderFailed, RetrievalSearched
from turnloom.board.events import ArtifactConsumed, ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.explain.logic.board_steps import seconds_of
from turnloom.explain.logic.rows import Handlers, Rows
from turnloom.explain.logic.verdicts import words_for
from turnloom.explain.logic.words import listed, words
from turnloom.explain.spec.board import items
from turnloom.explain.spec.text import counted
from turnloom.kernel.values import preview
from turnloom.log.spec import Event
from turnloom.reaction import events as reaction
from turnloom.reaction.logic.judging import FAILED, FORWARDED, LATER, TAKEN


def _name(artifact: Artifact) -> str:
    return f"{artifact.type} {artifact.id}"


def _on_published(rows: Rows, event: Event, fact: ArtifactPublished) -> None:
    artifact = fact.artifact
    rows.add(_row_of(artifact.id), event, "artifact", artifact.produced_by, note=_name(artifact))


def _on_received(rows: Rows, event: Event, fact: reaction.ArtifactReceived) -> None:
    artifact = fact.artifact
    note = f"{_name(artifact)} of run {artifact.run}"
    rows.add(_row_of(artifact.id), event, "artifact", artifact.produced_by, note=note)


def _on_made(rows: Rows, event: Event, fact: ArtifactMade) -> None:
    note = f"{_name(fact.artifact)}, not published"
    rows.add(event.id, event, "artifact", fact.artifact.produced_by, note=note)


def _on_opened(rows: Rows, event: Event, fact: reaction.ArtifactOpened) -> None:
    key = _row_of(f"{fact.artifact}/{fact.subscription}")
    rows.add(key, event, "opened", fact.subscription, note=fact.artifact)


def _row_of(offered: str) -> str:
    """The row of what is offered: an artifact, or one to a subscription that can see it now."""
    return f"artifact/{offered}"


def _on_offered(rows: Rows, event: Event, fact: reaction.ArtifactOffered) -> None:
    marks = {TAKEN: "", FORWARDED: "", LATER: " later"}
    to = [f"{each.subscription}{marks[each.verdict]}" for each in fact.to if each.verdict in marks]
    failed = [
        f"; {each.subscription} {words_for(each, None)}"
        for each in fact.to
        if each.verdict in FAILED
    ]
    told = f" → {', '.join(to) or 'nobody'}{''.join(failed)}"
    rows.extend(_row_of(event.id.removeprefix("offer/")), told)


def _on_consumed(rows: Rows, event: Event, fact: ArtifactConsumed) -> None:
    if fact.run:
        note = f"{listed(fact.artifacts)} → run {fact.run}"
        rows.add(event.id, event, "set", fact.subscription, note=note)
        return
    again = f", once more after turn {fact.retry_of}" if fact.retry_of else ""
    taken = f"{fact.subscription or 'given'}: {listed(fact.artifacts)}{again}"
    rows.announce(f"t{fact.turn}", taken)


def _on_given(rows: Rows, event: Event, fact: reaction.ArtifactsGiven) -> None:
    note = listed([each.id for each in fact.artifacts])
    rows.add(event.id, event, "given", fact.agent, note=note)


def _on_gathered(rows: Rows, event: Event, fact: ContextGathered) -> None:
    note = f"{items(len(fact.items))}{', as the fallback' if fact.fallback else ''}"
    rows.add(event.id, event, "context", fact.provider, seconds=seconds_of(fact), note=note)


def _on_searched(rows: Rows, event: Event, fact: RetrievalSearched) -> None:
    note = f"{preview(fact.query)}: {counted(len(fact.results), 'result')}"
    seconds = fact.micros / 1_000_000
    rows.add(event.id, event, "search", fact.collection, seconds=seconds, note=note)


def _on_provider_failed(rows: Rows, event: Event, fact: ProviderFailed) -> None:
    note = f"failed: {fact.error}: {fact.message}"
    rows.add(event.id, event, "context", fact.provider, note=note)


def _on_chosen(rows: Rows, event: Event, fact: reaction.SampleChosen) -> None:
    rows.add(event.id, event, "choice", fact.agent, note=words(event))


def _on_expired(rows: Rows, event: Event, fact: reaction.JoinExpired) -> None:
    rows.add(event.id, event, "expired", fact.subscription, note=listed(fact.artifacts))


def _on_closed(rows: Rows, event: Event, fact: reaction.BatchClosed) -> None:
    rows.add(event.id, event, "batch", fact.subscription, note=fact.reason)


def _on_retry(rows: Rows, event: Event, fact: reaction.RetryAsked) -> None:
    rows.add(event.id, event, "retry", fact.by, note=f"turn {fact.turn}")


def _on_limit(rows: Rows, event: Event, fact: reaction.LimitReached) -> None:
    rows.add(event.id, event, "limit", event.actor, note=words(event))


BOARD_HANDLERS: Handlers = {
    ArtifactPublished.kind: _on_published,
    ArtifactMade.kind: _on_made,
    ArtifactConsumed.kind: _on_consumed,
    ContextGathered.kind: _on_gathered,
    ProviderFailed.kind: _on_provider_failed,
    RetrievalSearched.kind: _on_searched,
    reaction.ArtifactReceived.kind: _on_received,
    reaction.ArtifactOpened.kind: _on_opened,
    reaction.ArtifactOffered.kind: _on_offered,
    reaction.ArtifactsGiven.kind: _on_given,
    reaction.SampleChosen.kind: _on_chosen,
    reaction.JoinExpired.kind: _on_expired,
    reaction.BatchClosed.kind: _on_closed,
    reaction.RetryAsked.kind: _on_retry,
    reaction.LimitReached.kind: _on_limit,
}
