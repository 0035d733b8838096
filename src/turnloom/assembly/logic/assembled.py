"""Assembled context: the segments of a turn, what was left out of it, and how it reads."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

import msgspec

from turnloom.assembly.events import Withheld
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.rendering import written_out
from turnloom.assembly.spec.formats import PLAIN, ContextFormat
from turnloom.assembly.spec.messages import Message
from turnloom.assembly.spec.retrieval import RetrievalResult
from turnloom.assembly.spec.segments import (
    ArtifactSegment,
    ContextSegment,
    HistorySegment,
    HistorySummary,
    LiteralSegment,
    RetrievalSegment,
    ShownArtifact,
    StateSegment,
    VariableSegment,
)
from turnloom.board.spec import Audience, Visibility
from turnloom.kernel.digests import digest

S = TypeVar("S", bound=msgspec.Struct)

replace = msgspec.structs.replace


class AssembledContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the sources of a turn show, what of it was left out, and how many tokens it has."""

    segments: tuple[ContextSegment, ...]
    withheld: tuple[Withheld, ...] = ()
    tokens: int = 0

    @property
    def retrieval_results(self) -> tuple[RetrievalResult, ...]:
        """All results of searches that are shown, so that they can be cited."""
        return tuple(
            result
            for segment in self.segments
            if isinstance(segment, RetrievalSegment)
            for result in segment.results
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be shown."""
        return not any(segment.content for segment in self.segments)

    @property
    def visibility(self) -> Audience:
        """Who may see all that is shown."""
        return together(each for segment in self.segments for each in _visibilities(segment))

    @classmethod
    def empty(cls) -> "AssembledContext":
        """The context of a turn for which nothing is declared."""
        return _EMPTY

    def to_prompt_string(self, options: ContextFormat = PLAIN) -> str:
        """The segments as one text."""
        return written_out(self.segments, options)


_EMPTY = AssembledContext(())


def _visibilities(segment: ContextSegment) -> Iterator[Visibility]:
    """The visibilities of what a segment shows."""
    match segment:
        case RetrievalSegment(results=results):
            yield from (each.visibility for each in results)
        case ArtifactSegment(artifacts=artifacts):
            yield from chain.from_iterable(each.visibility for each in artifacts)
        case HistorySegment(messages=messages, summary=summary):
            yield from (each.visibility for each in messages)
            yield from summary.visibility if summary else ()
        case _:
            return


class Trait(NamedTuple):
    """What is known of an item beside its fields: what it is called, why it is there, and by which
    key another source has the same."""

    label: str
    reason: str
    key: str = ""


def traits_of(segment: ContextSegment) -> list[Trait]:
    """The traits of each item of a segment."""
    match segment:
        case StateSegment():
            return [Trait("", "a value of the state")]
        case LiteralSegment():
            return [Trait("", "always the same")]
        case VariableSegment(variables=variables):
            return [Trait(each.name, f"variable {each.name}") for each in variables]
        case RetrievalSegment(results=results):
            return [_result_trait(each) for each in results]
        case ArtifactSegment(artifacts=artifacts):
            return [_artifact_trait(n, each) for n, each in enumerate(artifacts)]
        case HistorySegment(messages=messages, summary=summary):
            told = [_message_trait(each) for each in messages]
            return told if summary is None else [_summary_trait(summary), *told]


def _result_trait(result: RetrievalResult) -> Trait:
    label = f"{result.source_id}#{result.chunk}"
    return Trait(label, f"{label} scores {result.score:g}", f"passage {digest(result.content)}")


def _artifact_trait(number: int, item: ShownArtifact) -> Trait:
    label = f"artifact {item.artifact}" if item.artifact else f"item {number}"
    without = f"without {', '.join(item.redacted)}" if item.redacted else ""
    shown = label if item.artifact else "no artifact"
    reason = "; ".join(part for part in (shown, without) if part)
    return Trait(label, reason, f"artifact {item.artifact}" if item.artifact else "")


def _message_trait(message: Message) -> Trait:
    return Trait(f"event {message.seq}", f"said in event {message.seq}")


def _summary_trait(summary: HistorySummary) -> Trait:
    told = f"events {summary.first} to {summary.last}"
    return Trait(told, f"a summary of {told} ({summary.digest})")


def ranks_of(segment: ContextSegment) -> Sequence[int]:
    """How soon a segment can do without each of its items; of what was said the last goes last."""
    count = len(segment.items)
    return range(count - 1, -1, -1) if isinstance(segment, HistorySegment) else range(count)


def narrowed(segment: ContextSegment, shown: Mapping[int, str], tokens: int) -> ContextSegment:
    """A segment with the items that are shown, as far as they are."""
    match segment:
        case StateSegment() | LiteralSegment():
            return replace(segment, content=shown[0], tokens=tokens)
        case VariableSegment(variables=variables):
            return replace(segment, variables=_kept(variables, shown), tokens=tokens)
        case RetrievalSegment(results=results):
            return replace(segment, results=_kept(results, shown), tokens=tokens)
        case ArtifactSegment(artifacts=artifacts):
            return replace(segment, artifacts=_kept(artifacts, shown), tokens=tokens)
        case HistorySegment():
            return _narrowed_history(segment, shown, tokens)


def _kept(items: Sequence[S], shown: Mapping[int, str]) -> tuple[S, ...]:
    return tuple(replace(items[number], content=shown[number]) for number in shown)


def _narrowed_history(
    segment: HistorySegment, shown: Mapping[int, str], tokens: int
) -> HistorySegment:
    first = 0 if segment.summary is None else 1
    summary = segment.summary
    if summary is not None:
        summary = replace(summary, content=shown[0]) if 0 in shown else None
    messages = tuple(
        segment.messages[number - first]._replace(text=text)
        for number, text in shown.items()
        if number >= first
    )
    return replace(segment, messages=messages, summary=summary, tokens=tokens)
