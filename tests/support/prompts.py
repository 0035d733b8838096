"""Prompts as a log alone tells them."""

from collections.abc import Sequence

from turnloom.assembly.events import FrameAssembled
from turnloom.assembly.logic import prompt_text, system_text
from turnloom.assembly.spec import Message
from turnloom.log.spec import Event


def prompt_of(events: Sequence[Event], turn: int) -> str:
    """The prompt of a turn: the texts that its frame refers to, and what was said before it."""
    texts: dict[str, str] = {}
    frames: dict[int, FrameAssembled] = {}
    messages: list[Message] = []
    for event in events:
        fact = event.data
        match event.kind:
            case "frame.assembled":
                frames[event.seq] = fact
                texts |= {each.digest: each.text for each in fact.segments if each.text is not None}
                if fact.turn == turn:
                    segments = frames[fact.as_in or event.seq].segments
                    return prompt_text(system_text(segments, texts), messages)
            case "agent.text":
                messages.append(Message(event.seq, fact.agent, fact.text))
            case "user.text":
                messages.append(Message(event.seq, fact.author, fact.text))
            case _:
                pass
    raise AssertionError(f"turn {turn} has no frame")
