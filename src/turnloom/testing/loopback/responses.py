"""The part of OpenAI's Responses protocol that the loopback model supports."""

from collections.abc import Iterator, Mapping
from typing import Any

from turnloom.adapters.scripted import pieces
from turnloom.agents.spec import Answer, ToolCall
from turnloom.kernel.values import as_data
from turnloom.testing.loopback.protocol import CREATED, halves, name_problem

PATH = "/v1/responses"
NONE: list[Any] = []


def problem_with(body: Mapping[str, Any]) -> str | None:
    """Why a provider would reject the request; None if it is valid."""
    items: list[dict[str, Any]] = body.get("input") or []
    if not items:
        return "'input' is empty."
    called = {item["call_id"] for item in items if item.get("type") == "function_call"}
    given = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
    if called != given:
        return f"Tool calls and results do not match: {', '.join(sorted(called ^ given))}."
    calls = [item for item in items if item.get("type") == "function_call"]
    named: list[dict[str, Any]] = [*(body.get("tools") or ()), *calls]
    return name_problem(each["name"] for each in named)


class ResponsesReply:
    """One answer in the protocol: as one response, or as events."""

    def __init__(self, answer: Answer, body: Mapping[str, Any], number: int) -> None:
        self._text = answer.text or ("" if answer.output is None else as_data(answer.output))
        self._refusal = answer.refusal
        self._reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(answer.stop)
        part = _refused(self._refusal) if self._refusal else _part(self._text)
        self._message = _message(part, f"msg_{number}")
        self._calls = [_call(call, f"{number}_{n}") for n, call in enumerate(answer.calls)]
        self._usage = {
            "input_tokens": answer.usage.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.usage.cached_tokens},
            "output_tokens": answer.usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.usage.reasoning_tokens},
            "total_tokens": answer.usage.input_tokens + answer.usage.output_tokens,
        }
        self._head: dict[str, Any] = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": CREATED,
            "model": answer.model or body.get("model"),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": NONE,
        }

    def whole(self) -> dict[str, Any]:
        """The answer as one response."""
        output = [*([self._message] if self._text or self._refusal else ()), *self._calls]
        whole = {**self._head, "status": "completed", "output": output, "usage": self._usage}
        cut = {"status": "incomplete", "incomplete_details": {"reason": self._reason}}
        return whole | cut if self._reason else whole

    def unfinished(self) -> dict[str, Any]:
        """The response with the status `in_progress`."""
        return self.whole() | {"status": "in_progress"}

    def empty(self) -> dict[str, Any]:
        """A failed response without output."""
        return self.whole() | {"status": "failed", "output": NONE}

    def empty_chunks(self) -> Iterator[dict[str, Any]]:
        """The first event of a response."""
        opened: dict[str, Any] = {**self._head, "status": "in_progress", "output": NONE}
        yield {"type": "response.created", "response": opened}

    def chunks(self) -> Iterator[dict[str, Any]]:
        """All events of the answer."""
        yield from self.unfinished_chunks()
        kind = "response.incomplete" if self._reason else "response.completed"
        yield {"type": kind, "response": self.whole()}

    def unfinished_chunks(self) -> Iterator[dict[str, Any]]:
        """The events of the answer without the last one."""
        yield from self.text_chunks()
        if self._text or self._refusal:
            yield from self._end_of_text()
        for place, call in enumerate(self._calls, int(bool(self._text or self._refusal))):
            yield from _events_of(call, place)

    def text_chunks(self) -> Iterator[dict[str, Any]]:
        """The events of the answer's text."""
        yield from self.empty_chunks()
        if not (self._text or self._refusal):
            return
        item: dict[str, Any] = {**self._message, "status": "in_progress", "content": NONE}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        part = _refused("") if self._refusal else _part("")
        yield {"type": "response.content_part.added", **self._place(), "part": part}
        for piece in pieces(self._text):
            yield {"type": "response.output_text.delta", **self._place(), "delta": piece}
        for piece in pieces(self._refusal):
            yield {"type": "response.refusal.delta", **self._place(), "delta": piece}

    def _end_of_text(self) -> Iterator[dict[str, Any]]:
        if self._refusal:
            done = {"type": "response.refusal.done", "refusal": self._refusal}
        else:
            done = {"type": "response.output_text.done", "text": self._text}
        yield {**done, **self._place()}
        (part,) = self._message["content"]
        yield {"type": "response.content_part.done", **self._place(), "part": part}
        yield {"type": "response.output_item.done", "output_index": 0, "item": self._message}

    def _place(self) -> dict[str, Any]:
        at = {"item_id": self._message["id"], "output_index": 0, "content_index": 0}
        return {**at, "logprobs": NONE}


def _events_of(call: Mapping[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """The events of a tool call."""
    at = {"item_id": call["id"], "output_index": place}
    opened = {**call, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": place, "item": opened}
    for part in halves(call["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": part}
    whole = {"name": call["name"], "arguments": call["arguments"]}
    yield {"type": "response.function_call_arguments.done", **at, **whole}
    yield {"type": "response.output_item.done", "output_index": place, "item": call}


def _message(part: dict[str, Any], id: str) -> dict[str, Any]:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": NONE}


def _refused(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    return {
        "id": f"fc_{id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id or f"call_{id}",
        "name": call.tool,
        "arguments": as_data(call.arguments),
    }
