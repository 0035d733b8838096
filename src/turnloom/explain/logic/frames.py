"""Frames with what they refer to: segments of earlier frames, texts, messages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from turnloom.agents.events import AgentOutput, AgentText, UserText
from turnloom.agents.logic.folding import FOLDS
from turnloom.agents.spec import RunState
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    RetrievalSearched,
    Segment,
    Withheld,
)
from turnloom.assembly.logic.pieces import texts_of
from turnloom.assembly.logic.searched import found_texts
from turnloom.assembly.spec import Message
from turnloom.log.spec import Event


class Sighted(NamedTuple):
    """A frame but for its history: what it shows and what it leaves out."""

    segments: tuple[Segment, ...]
    withheld: tuple[Withheld, ...]


class Frames:
    """What the frames of a run refer to, as far as its events were taken in."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.texts: dict[str, str] = {}
        self._heard = RunState("")
        self._listed: dict[int, Sighted] = {}
        for event in events:
            self.take(event)

    @property
    def messages(self) -> Sequence[Message]:
        """What was said so far, as others in the run hear it."""
        return self._heard.messages

    def take(self, event: Event) -> None:
        """Take in the next event of the run."""
        fact = event.data
        if isinstance(fact, FrameAssembled) and not fact.as_in:
            self._listed[event.seq] = Sighted(fact.segments, fact.withheld)
            self._hold({each.digest: each.text for each in fact.segments if each.text is not None})
        elif isinstance(fact, ContextGathered):
            self._hold(texts_of(fact))
        elif isinstance(fact, RetrievalSearched):
            self._hold(found_texts(fact))
        elif isinstance(fact, AgentText | AgentOutput | UserText):
            FOLDS[type(fact)](self._heard, event)

    def _hold(self, texts: Mapping[str, str]) -> None:
        for digest, text in texts.items():
            self.texts.setdefault(digest, text)

    def sighted(self, frame: FrameAssembled) -> Sighted | None:
        """What a frame shows and leaves out; nothing when the frame it names is not there."""
        if not frame.as_in:
            return Sighted(frame.segments, frame.withheld)
        return self._listed.get(frame.as_in)

    def heard(self, frame: FrameAssembled) -> list[Message]:
        """The messages that a frame shows."""
        first, last = frame.history.first, frame.history.last
        return [message for message in self.messages if first <= message.seq <= last]
