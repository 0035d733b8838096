"""A task as a chat: the messages that a model sees, and the exchanges of the turn."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    ModelAnswered,
    OutputRefused,
    ToolFailed,
    ToolReturned,
)
from turnloom.agents.logic.outputs.forms import around_form
from turnloom.agents.spec import USER, WORKFLOW, Exchange, Task, ToolResult
from turnloom.assembly.spec import Message
from turnloom.kernel.digests import chain_digest, digest
from turnloom.kernel.values import Json, as_data, as_object, preview
from turnloom.log.spec import Fact

# The end of a tool call.
Outcome = ToolReturned | ToolFailed


def request(frame: str, exchanges: Sequence[Exchange]) -> str:
    """The digest of a request: the frame and the exchanges since."""
    return (
        chain_digest(frame, *(digest(as_data(each)) for each in exchanges)) if exchanges else frame
    )


def exchange_of(
    answered: ModelAnswered, said: Sequence[Fact], outcomes: Sequence[Outcome]
) -> Exchange | None:
    """The exchange that the engine receives if it is called again in this turn.

    `said` are the facts of the answer, and `outcomes` the ends of the tools that it called, or that
    received its output.
    """
    if answered.calls:
        text = next((fact.text for fact in said if isinstance(fact, AgentText)), "")
        return Exchange(text, answered.calls, tuple(map(_result, outcomes)))
    for fact in said:
        if isinstance(fact, OutputRefused):
            return Exchange(answered.raw, problem=fact.problem)
        if isinstance(fact, AgentOutput):
            return _failed(fact.output, outcomes)
    return None


def passed_on(said: Sequence[Fact]) -> Exchange:
    """The exchange that passes the answer of one engine to the next engine of the chain."""
    words = [fact.text for fact in said if isinstance(fact, AgentText)]
    made = [as_data(fact.output) for fact in said if isinstance(fact, AgentOutput)]
    drafts = [fact.raw for fact in said if isinstance(fact, ModelAnswered) and fact.raw]
    return Exchange("\n".join((*words, *made) or drafts))


def _result(outcome: Outcome) -> ToolResult:
    if isinstance(outcome, ToolReturned):
        return ToolResult(outcome.result)
    return ToolResult(error=f"{outcome.error}: {outcome.message}")


def _failed(output: Json, outcomes: Sequence[Outcome]) -> Exchange | None:
    """The problem of an output, from the first tool that failed with it."""
    for outcome in outcomes:
        if isinstance(outcome, ToolFailed):
            problem = f"Tool {outcome.tool} failed with it: {outcome.error}: {outcome.message}"
            return Exchange(as_data(output), problem=problem)
    return None


# The longest tool name that all providers accept.
LONGEST = 64

_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def plainly(name: str) -> str:
    """A name reduced to letters, digits, `_` and `-`."""
    return _OTHER.sub("_", name)[:LONGEST] or "_"


def spelled(names: Iterable[str]) -> dict[str, str]:
    """Each name reduced to letters, digits, `_` and `-`; a number keeps them unique."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = plainly(name)
        numbered = (f"{plain[: LONGEST - 4]}_{number}" for number in count(2))
        found[name] = next(each for each in chain((plain,), numbered) if each not in taken)
        taken.add(found[name])
    return found


# Sent if the model spoke last: providers expect the last message to be the user's.
CONTINUE = "Go on."

# The text around the problem when an answer does not match its schema.
WRONG, AGAIN = "That is not what was asked for. ", "\nAnswer again."


class Own(NamedTuple):
    """A message of the model itself."""

    text: str


class OthersMessage(NamedTuple):
    """A message of the user or of another agent."""

    text: str


class Called(NamedTuple):
    """A tool call of the model, under the name that it knows."""

    id: str
    name: str
    arguments: dict[str, Json]


class Returned(NamedTuple):
    """The result or error of a tool call, as plain text: some libraries add wording to errors."""

    id: str
    name: str
    text: str


Part = Own | OthersMessage | Called | Returned


def dialogue_of(task: Task, names: Mapping[str, str]) -> list[Part]:
    """The messages, tool calls and results that the model sees; the last one is not its own
    message.

    `names` maps tools to their names in the provider's protocol.
    """
    parts: list[Part] = [_said(task.agent, message) for message in task.transcript]
    for number, exchange in enumerate(task.exchanges):
        parts += exchanged(exchange, number, names)
    if _is_left_alone(task):
        parts.append(OthersMessage(CONTINUE))
    return parts


def added_to(task: Task) -> tuple[str, ...]:
    """The texts that a model sees in addition to the task, in order."""
    added = [each for exchange in task.exchanges if exchange.problem for each in (WRONG, AGAIN)]
    if _is_left_alone(task):
        added.append(CONTINUE)
    if task.output is not None and (around := around_form(task.output)):
        added.append(around)
    return tuple(added)


def _is_left_alone(task: Task) -> bool:
    """Whether the model spoke last, or there is no message at all."""
    for exchange in reversed(task.exchanges):
        if exchange.calls or exchange.problem:
            return False
        if exchange.text:
            return True
    return not task.transcript or task.transcript[-1].author == task.agent


def _said(agent: str, message: Message) -> Part:
    """A message of the agent itself, of the user, or of another agent with its name."""
    if message.author == agent:
        return Own(message.text)
    is_served = message.author in (USER, WORKFLOW)
    return OthersMessage(message.text if is_served else f"{message.author}: {message.text}")


def exchanged(exchange: Exchange, number: int, names: Mapping[str, str]) -> Iterator[Part]:
    """The messages of an earlier call of the turn, and the results of its tools."""
    if exchange.text:
        yield Own(exchange.text)
    called = [
        Called(id, names.get(call.tool, plainly(call.tool)), call.arguments)
        for id, call in zip(_ids(exchange, number), exchange.calls, strict=True)
    ]
    yield from called
    for call, result in zip(called, exchange.results, strict=True):
        value = result.value if isinstance(result.value, str) else as_data(result.value)
        yield Returned(call.id, call.name, result.error or value)
    if exchange.problem:
        yield OthersMessage(f"{WRONG}{exchange.problem}{AGAIN}")


def _ids(exchange: Exchange, number: int) -> Iterator[str]:
    """Unique ids for the calls of an exchange, even if the provider gave none."""
    taken: set[str] = {""}
    for n, call in enumerate(exchange.calls):
        yield f"call_{number}_{n}" if call.id in taken else call.id
        taken.add(call.id)


# The key for arguments that are not valid JSON.
UNREAD = "INVALID_JSON"


def read_arguments(given: str | Mapping[str, Any]) -> dict[str, Json]:
    """The arguments of a tool call as an object; invalid JSON is kept under one key, for the tool
    to reject."""
    try:
        text = given if isinstance(given, str) else json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        return {UNREAD: preview(given)}
    try:
        found = as_object(msgspec.json.decode(text or "{}"))
    except (ValueError, RecursionError):
        found = None
    return {UNREAD: text} if found is None else found
