"""The part of OpenAI's Chat Completions protocol that the loopback model supports."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turnloom.adapters.scripted import pieces
from turnloom.agents.spec import Answer, ToolCall
from turnloom.kernel.values import as_data
from turnloom.testing.loopback.protocol import CREATED, halves, name_problem

PATH = "/v1/chat/completions"


def problem_with(body: Mapping[str, Any]) -> str | None:
    """Why a provider would reject the request; None if it is valid."""
    messages: list[dict[str, Any]] = body.get("messages") or []
    if not messages:
        return "'messages' is empty."
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    named: list[dict[str, Any]] = [*(body.get("tools") or ()), *calls]
    names = [each["function"]["name"] for each in named if "function" in each]
    return name_problem(names) or _call_problem(messages)


def _call_problem(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The first mismatch between tool calls and their results; None if they match."""
    due: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in due:
                return f"Tool result {message['tool_call_id']!r} has no call before it."
            due.remove(message["tool_call_id"])
        elif due:
            break
        else:
            due = {call["id"] for call in message.get("tool_calls") or ()}
    return f"Tool calls without a result: {', '.join(sorted(due))}." if due else None


class ChatReply:
    """One answer in the protocol: as one completion, or as chunks."""

    def __init__(self, answer: Answer, body: Mapping[str, Any], number: int) -> None:
        self._text = answer.text or ("" if answer.output is None else as_data(answer.output))
        self._calls = [_call(call, f"call_{number}_{n}") for n, call in enumerate(answer.calls)]
        self._usage = {
            "prompt_tokens": answer.usage.input_tokens,
            "completion_tokens": answer.usage.output_tokens,
            "total_tokens": answer.usage.input_tokens + answer.usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": answer.usage.reasoning_tokens},
        }
        model = answer.model or body.get("model")
        self._head = {"id": f"chatcmpl-{number}", "created": CREATED, "model": model}
        self._refusal = answer.refusal
        ends = {"length": "length", "filter": "content_filter"}
        self._ends = ends.get(answer.stop) or ("tool_calls" if self._calls else "stop")
        options: Mapping[str, Any] = body.get("stream_options") or {}
        self._is_counted = options.get("include_usage") is True

    def whole(self) -> dict[str, Any]:
        """The answer as one completion."""
        message: dict[str, Any] = {"role": "assistant", "content": self._text or None}
        if self._calls:
            message["tool_calls"] = self._calls
        if self._refusal:
            message["refusal"] = self._refusal
        choice = {"index": 0, "message": message, "finish_reason": self._ends}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage,
        }

    def unfinished(self) -> dict[str, Any]:
        """The completion without a finish reason."""
        whole = self.whole()
        (choice,) = whole["choices"]
        return {**whole, "choices": [{**choice, "finish_reason": None}]}

    def empty(self) -> dict[str, Any]:
        """A completion without choices."""
        return self.whole() | {"choices": []}

    def empty_chunks(self) -> Iterator[dict[str, Any]]:
        """A chunk without choices."""
        yield self._chunk({}) | {"choices": [], "usage": self._usage}

    def chunks(self) -> Iterator[dict[str, Any]]:
        """All chunks of the answer."""
        yield from self.unfinished_chunks()
        yield self._chunk({}, self._ends)
        if self._is_counted:
            yield {**self._chunk({}), "choices": [], "usage": self._usage}

    def unfinished_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks of the answer without the finish reason."""
        yield from self.text_chunks()
        for index, call in enumerate(self._calls):
            given = call["function"]["arguments"]
            opened = {**call, "function": {**call["function"], "arguments": ""}}
            yield self._chunk({"tool_calls": [{"index": index, **opened}]})
            for part in halves(given):
                more = {"index": index, "function": {"arguments": part}}
                yield self._chunk({"tool_calls": [more]})

    def text_chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks of the answer's text."""
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in pieces(self._text):
            yield self._chunk({"content": piece})
        for piece in pieces(self._refusal):
            yield self._chunk({"refusal": piece})

    def _chunk(self, delta: Mapping[str, Any], ends: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": ends}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": as_data(call.arguments)}
    return {"id": call.id or id, "type": "function", "function": function}
