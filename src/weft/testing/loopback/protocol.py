"""The protocol of OpenAI's chat completions, as far as a model on loopback speaks it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.adapters.scripted import pieces
from weft.agents.spec import Answer, ToolCall
from weft.kernel.values import as_data

CREATED = 1_767_225_600

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def error(status: int, message: str) -> dict[str, Any]:
    """The body of a refusal."""
    kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}
    return {"error": {"message": message, "type": kinds.get(status, "server_error")}}


def models(name: str) -> dict[str, Any]:
    """The list of models."""
    listed = {"id": name, "object": "model", "created": CREATED, "owned_by": "loopback"}
    return {"object": "list", "data": [listed]}


def misformed(body: Mapping[str, Any]) -> str | None:
    """Why a provider would refuse a request for an answer, or nothing when it would not."""
    messages: list[dict[str, Any]] = body.get("messages") or []
    if not messages:
        return "'messages' is empty."
    for tool in body.get("tools") or ():
        if not _NAME.fullmatch(tool["function"]["name"]):
            return f"{tool['function']['name']!r} is no name of a function."
    return _unanswered(messages)


def _unanswered(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Which calls have no results behind them, or which results no call."""
    due: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in due:
                return f"{message['tool_call_id']!r} answers no call of the message before it."
            due.remove(message["tool_call_id"])
        elif due:
            break
        else:
            due = {call["id"] for call in message.get("tool_calls") or ()}
    return f"Calls without a result: {', '.join(sorted(due))}." if due else None


class Reply:
    """One answer as data of the protocol: whole, or in chunks."""

    def __init__(self, answer: Answer, body: Mapping[str, Any], number: int) -> None:
        self._text = answer.text or ("" if answer.output is None else as_data(answer.output))
        self._calls = [_call(call, f"call_{number}_{n}") for n, call in enumerate(answer.calls)]
        self._usage = {
            "prompt_tokens": answer.usage.input_tokens,
            "completion_tokens": answer.usage.output_tokens,
            "total_tokens": answer.usage.input_tokens + answer.usage.output_tokens,
        }
        self._head = {"id": f"chatcmpl-{number}", "created": CREATED, "model": body.get("model")}
        self._ends = "tool_calls" if self._calls else "stop"
        options: Mapping[str, Any] = body.get("stream_options") or {}
        self._is_counted = options.get("include_usage") is True

    def whole(self) -> dict[str, Any]:
        """The answer as one completion."""
        message: dict[str, Any] = {"role": "assistant", "content": self._text or None}
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "finish_reason": self._ends}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage,
        }

    def chunks(self) -> Iterator[dict[str, Any]]:
        """The answer in chunks, up to its end."""
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in pieces(self._text):
            yield self._chunk({"content": piece})
        for index, call in enumerate(self._calls):
            given = call["function"]["arguments"]
            opened = {**call, "function": {**call["function"], "arguments": ""}}
            yield self._chunk({"tool_calls": [{"index": index, **opened}]})
            for part in (given[: len(given) // 2], given[len(given) // 2 :]):
                more = {"index": index, "function": {"arguments": part}}
                yield self._chunk({"tool_calls": [more]})
        yield self._chunk({}, self._ends)
        if self._is_counted:
            yield {**self._chunk({}), "choices": [], "usage": self._usage}

    def begun(self) -> Iterator[dict[str, Any]]:
        """The answer in chunks, as far as it has a text."""
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in pieces(self._text):
            yield self._chunk({"content": piece})

    def _chunk(self, delta: Mapping[str, Any], ends: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": ends}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": as_data(call.arguments)}
    return {"id": call.id or id, "type": "function", "function": function}
