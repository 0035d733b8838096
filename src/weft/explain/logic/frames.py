"""Frames with what they refer to: segments of earlier frames, texts, messages."""

from collections.abc import Iterable
from typing import NamedTuple

from weft.agents.events import AgentText, UserText
from weft.assembly.events import FrameAssembled, Segment, Withheld
from weft.assembly.spec import Message
from weft.log.spec import Event


class Sighted(NamedTuple):
    """The system part of a frame: what it shows and what it leaves out."""

    segments: tuple[Segment, ...]
    withheld: tuple[Withheld, ...]


class Frames:
    """What the frames of a run refer to, as far as its events were taken in."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.texts: dict[str, str] = {}
        self.messages: list[Message] = []
        self._listed: dict[int, Sighted] = {}
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take in the next event of the run."""
        match event.data:
            case FrameAssembled(as_in=0) as frame:
                self._listed[event.seq] = Sighted(frame.segments, frame.withheld)
                for segment in frame.segments:
                    if segment.text is not None:
                        self.texts.setdefault(segment.digest, segment.text)
            case AgentText(agent=author, text=text) | UserText(author=author, text=text):
                self.messages.append(Message(event.seq, author, text))
            case _:
                pass

    def sighted(self, frame: FrameAssembled) -> Sighted | None:
        """What a frame shows and leaves out; nothing when the frame it names is not there."""
        if not frame.as_in:
            return Sighted(frame.segments, frame.withheld)
        return self._listed.get(frame.as_in)

    def heard(self, frame: FrameAssembled) -> list[Message]:
        """The messages that a frame shows."""
        first, last = frame.history.first, frame.history.last
        return [message for message in self.messages if first <= message.seq <= last]
