"""Why answers end, by the words of providers, and what OpenAI's protocols say of it."""

from contextvars import ContextVar
from typing import Any

from turnloom.agents.events import ModelAnswered
from turnloom.agents.logic.dialogues import UNREAD

# What providers call it: in their own protocols, and as libraries read them.
WORDS = {
    "end": ("stop", "end", "end_turn", "stop_sequence", "completed", "eos", "eos_token"),
    "tool": ("tool", "tool_call", "tool_calls", "tool_use", "function_call"),
    "length": ("length", "max_tokens", "max_output_tokens", "model_length"),
    "filter": (
        *("filter", "content_filter", "content_filtered", "guardrail_intervened"),
        *("safety", "recitation", "blocklist", "prohibited_content", "spii"),
    ),
    "refusal": ("refusal",),
}
STOPS = {word: stop for stop, words in WORDS.items() for word in words}


def stop_of(reason: str | None, *, calls: bool = False, refusal: str = "") -> str:
    """Why an answer ended: `end`, `tool`, `length`, `refusal` or `filter`; nothing if its provider
    has another word for it."""
    if refusal:
        return "refusal"
    stop = STOPS.get((reason or "").lower(), "")
    return "tool" if calls and stop in ("", "end") else stop


class Ending:
    """What pieces of an answer, or a whole one, say of its end: the provider's word, and why it
    refused to answer."""

    def __init__(self) -> None:
        self.reason = ""
        self.refusal = ""

    def note(self, given: Any) -> None:
        """Take a piece of either protocol of OpenAI, or a whole answer."""
        for choice in getattr(given, "choices", None) or ():
            self.reason = getattr(choice, "finish_reason", None) or self.reason
            said = getattr(choice, "delta", None) or getattr(choice, "message", None)
            self.refusal += getattr(said, "refusal", None) or ""
        if getattr(given, "type", "") == "response.refusal.delta":
            self.refusal += given.delta
        response = getattr(given, "response", given)
        if (details := getattr(response, "incomplete_details", None)) is not None:
            self.reason = getattr(details, "reason", None) or self.reason
        if response is given:
            self._note_parts(getattr(given, "output", None))

    def _note_parts(self, items: Any) -> None:
        for item in items or ():
            for part in getattr(item, "content", None) or ():
                self.refusal += getattr(part, "refusal", None) or ""


_NOTED: ContextVar[Ending | None] = ContextVar("ending", default=None)


def noting() -> Ending:
    """What is noted of the answer that is asked for from here on, in this task."""
    ending = Ending()
    _NOTED.set(ending)
    return ending


def note(given: Any) -> None:
    """Note what a piece of the answer says that this task asks for."""
    if (ending := _NOTED.get()) is not None:
        ending.note(given)


def cut_off(answered: ModelAnswered) -> str:
    """Why a turn fails whose model was cut at its limit in the middle of a call, if it was."""
    is_cut = any(UNREAD in call.arguments for call in answered.calls)
    return unanswered(answered) if is_cut and answered.stop == "length" else ""


def unanswered(answered: ModelAnswered) -> str:
    """Why a turn fails whose answer is not of the form asked for, if to ask again is in vain."""
    match answered.stop:
        case "length":
            return (
                "AnswerCutOff: the answer was cut at its limit of tokens, after "
                f"{answered.usage.output_tokens}. Raise the limit, or ask for less."
            )
        case "refusal" | "filter":
            return f"AnswerRefused: {answered.refusal or 'the provider filtered the answer'}"
        case _:
            return ""
