"""Recorded frames with the texts they refer to, and the call that an event belongs to."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from turnloom.agents.events import AgentOutput, AgentText, CallsSettled, EffectDone, UserText
from turnloom.agents.logic.folding import FOLDS
from turnloom.agents.spec import RunState
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    RetrievalSearched,
    Segment,
    Withheld,
)
from turnloom.assembly.logic.frames import texts_of
from turnloom.assembly.logic.retrieval import found_texts
from turnloom.assembly.spec import Message
from turnloom.log.spec import Event


class FrameView(NamedTuple):
    """A frame without its history: segments and withheld items."""

    segments: tuple[Segment, ...]
    withheld: tuple[Withheld, ...]


class Frames:
    """The texts and messages that the frames of a run refer to, up to the last event taken in."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.texts: dict[str, str] = {}
        self._state = RunState("")
        self._listed: dict[int, FrameView] = {}
        for event in events:
            self.take(event)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages so far, as other agents see them."""
        return self._state.messages

    def take(self, event: Event) -> None:
        """Take in the next event of the run."""
        fact = event.data
        if isinstance(fact, FrameAssembled) and not fact.as_in:
            self._listed[event.seq] = FrameView(fact.segments, fact.withheld)
            self._hold({each.digest: each.text for each in fact.segments if each.text is not None})
        elif isinstance(fact, ContextGathered):
            self._hold(texts_of(fact))
        elif isinstance(fact, RetrievalSearched):
            self._hold(found_texts(fact))
        elif isinstance(fact, AgentText | AgentOutput | UserText):
            FOLDS[type(fact)](self._state, event)

    def _hold(self, texts: Mapping[str, str]) -> None:
        for digest, text in texts.items():
            self.texts.setdefault(digest, text)

    def view_of(self, frame: FrameAssembled) -> FrameView | None:
        """The segments and withheld items of a frame; None if the frame it refers to is missing."""
        if not frame.as_in:
            return FrameView(frame.segments, frame.withheld)
        return self._listed.get(frame.as_in)

    def messages_of(self, frame: FrameAssembled) -> list[Message]:
        """The messages that a frame shows."""
        first, last = frame.history.first, frame.history.last
        return [message for message in self.messages if first <= message.seq <= last]


_CALL = re.compile(
    r"(?:t\d+(?:/s\d+)?(?:/e\d+)?/model(?:\#\d+)?(?:/(?:tool|auto|message_hook)\.\d+)?"
    r"|t\d+(?:/e\d+)?/context(?:/\d+)?"
    r"|t\d+/message_hook\.\d+"
    r"|(?:t\d+|chat)/(?:before|after)_(?:agent|chat)\.\d+(?:@\d+)?"
    r"|chat/pick/t\d+\.\d+)"
)
_TURN = re.compile(r"t(\d+)(?=[/>]|$)")
_STEP = re.compile(r"(s\d+)/")
_TOOL = re.compile(r"(.*)/(?:tool|auto)\.(\d+)")
_HOOK = re.compile(r".*/(?:before|after)_(?:agent|chat)\.(\d+)(?:@\d+)?")
_ASKED = re.compile(r".*/model(?:\#(\d+))?")
_PART = re.compile(r"t\d+(?:/s(\d+))?(?:/e(\d+))?/")


class Part(NamedTuple):
    """A part of a turn: its try, if there are several, and its engine."""

    sample: int | None
    engine: int

    @property
    def name(self) -> str:
        """The name for people; empty for the first engine of the only try."""
        sample = [] if self.sample is None else [f"try {self.sample + 1}"]
        return ", ".join([*sample, *([f"engine {self.engine + 1}"] if self.engine else [])])


def part_of(id: str) -> Part:
    """The part of a turn in an id or call key."""
    found = _PART.match(id)
    sample, engine = (found[1], found[2]) if found else (None, None)
    return Part(None if sample is None else int(sample), int(engine or 0))


def call_of(event: Event) -> str:
    """The key of the model call, tool, hook, pick or gathering of an event; empty without one."""
    if isinstance(event.data, CallsSettled):
        return ""
    id = event.data.call if isinstance(event.data, EffectDone) else event.id
    found = _CALL.match(id)
    return found[0] if found else ""


def turn_of(event: Event) -> int | None:
    """The turn in the id of an event."""
    found = _TURN.match(event.id)
    return int(found[1]) if found else None


def step_of(event: Event) -> str | None:
    """The key of the flow step in the id of an event."""
    found = _STEP.match(event.id)
    return found[1] if found else None


def model_call_of(tool: str) -> str:
    """The key of the model call that requested a tool; empty for other keys."""
    found = _TOOL.fullmatch(tool)
    return found[1] if found else ""


def place_of(tool: str) -> int:
    """The position of a tool call in its answer, from 0."""
    found = _TOOL.fullmatch(tool)
    return int(found[2]) if found else 0


def number_of(model_call: str) -> int:
    """The number of a model call in its turn, from 1."""
    found = _ASKED.fullmatch(model_call)
    return int(found[1] or 1) if found else 0


def hook_of(key: str) -> int | None:
    """The position of a hook among all declared hooks, from 0."""
    found = _HOOK.fullmatch(key)
    return int(found[1]) if found else None
