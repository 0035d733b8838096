"""Why answers end: the stop reasons of providers, and OpenAI's protocols."""

from contextvars import ContextVar
from typing import Any

from turnloom.agents.events import ModelAnswered
from turnloom.agents.logic.dialogues import UNREAD

# Stop reasons of provider protocols and of client libraries.
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
    """Why an answer ended: `end`, `tool`, `length`, `refusal` or `filter`; empty if the provider's
    reason is unknown."""
    if refusal:
        return "refusal"
    stop = STOPS.get((reason or "").lower(), "")
    return "tool" if calls and stop in ("", "end") else stop


class Ending:
    """The stop reason and refusal of an answer, collected from its chunks."""

    def __init__(self) -> None:
        self.reason = ""
        self.refusal = ""

    def note(self, given: Any) -> None:
        """Take a chunk or a whole answer of either OpenAI protocol."""
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
    """Start to collect the ending of the next answer in this task."""
    ending = Ending()
    _NOTED.set(ending)
    return ending


def note(given: Any) -> None:
    """Add a chunk to the ending that this task collects."""
    if (ending := _NOTED.get()) is not None:
        ending.note(given)


def cut_off(answered: ModelAnswered) -> str:
    """Why a turn fails if its answer was truncated inside a tool call; empty otherwise."""
    is_cut = any(UNREAD in call.arguments for call in answered.calls)
    return unanswered(answered) if is_cut and answered.stop == "length" else ""


def unanswered(answered: ModelAnswered) -> str:
    """Why a turn fails if its answer is invalid and a retry is pointless; empty otherwise."""
    match answered.stop:
        case "length":
            return (
                "AnswerCutOff: the answer hit its token limit after "
                f"{answered.usage.output_tokens} tokens. Raise the limit, or ask for less."
            )
        case "refusal" | "filter":
            return f"AnswerRefused: {answered.refusal or 'the provider filtered the answer'}"
        case _:
            return ""
