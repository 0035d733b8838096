"""Which call and which turn an event belongs to: its id begins with the key of the call."""

import re

from weft.agents.events import EffectDone
from weft.log.spec import Event

_CALL = re.compile(
    r"(?:t\d+/model(?:\#\d+)?(?:/(?:tool|auto|message_hook)\.\d+)?"
    r"|t\d+/message_hook\.\d+"
    r"|(?:t\d+|chat)/(?:before|after)_(?:agent|chat)\.\d+(?:@\d+)?"
    r"|chat/pick/t\d+\.\d+)"
)
_TURN = re.compile(r"t(\d+)(?=[/>]|$)")
_TOOL = re.compile(r"(.*)/(?:tool|auto)\.(\d+)")
_HOOK = re.compile(r".*/(?:before|after)_(?:agent|chat)\.(\d+)(?:@\d+)?")
_ASKED = re.compile(r".*/model(?:\#(\d+))?")


def call_of(event: Event) -> str:
    """The key of the model call, tool, hook or pick that left an event; empty if none did."""
    id = event.data.call if isinstance(event.data, EffectDone) else event.id
    found = _CALL.match(id)
    return found[0] if found else ""


def turn_of(event: Event) -> int | None:
    """The turn that an event belongs to by its id."""
    found = _TURN.match(event.id)
    return int(found[1]) if found else None


def model_call_of(tool: str) -> str:
    """The key of the model call that a tool was called for; empty if the key is no tool's."""
    found = _TOOL.fullmatch(tool)
    return found[1] if found else ""


def place_of(tool: str) -> int:
    """Which of the calls of an answer the call of a tool is, from 0."""
    found = _TOOL.fullmatch(tool)
    return int(found[2]) if found else 0


def number_of(model_call: str) -> int:
    """Which model call of its turn it is, from 1."""
    found = _ASKED.fullmatch(model_call)
    return int(found[1] or 1) if found else 0


def hook_of(key: str) -> int | None:
    """The place of a hook among all that are declared, from 0."""
    found = _HOOK.fullmatch(key)
    return int(found[1]) if found else None
