"""A task as a dialogue: what a model is shown, and the exchanges so far."""

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

# How a call of a tool ended.
Outcome = ToolReturned | ToolFailed


def request(frame: str, exchanges: Sequence[Exchange]) -> str:
    """The digest of what an engine is asked with: the frame, and what was exchanged since."""
    return (
        chain_digest(frame, *(digest(as_data(each)) for each in exchanges)) if exchanges else frame
    )


def exchange_of(
    answered: ModelAnswered, said: Sequence[Fact], outcomes: Sequence[Outcome]
) -> Exchange | None:
    """What the engine is told of its answer and of the tools behind it, if it is asked again.

    `said` is what the answer came to, and `outcomes` how the tools ended that it had called, or
    that took its output.
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
    """What the next engine of a turn is told of what the one before it said and made."""
    words = [fact.text for fact in said if isinstance(fact, AgentText)]
    made = [as_data(fact.output) for fact in said if isinstance(fact, AgentOutput)]
    drafts = [fact.raw for fact in said if isinstance(fact, ModelAnswered) and fact.raw]
    return Exchange("\n".join((*words, *made) or drafts))


def _result(outcome: Outcome) -> ToolResult:
    if isinstance(outcome, ToolReturned):
        return ToolResult(outcome.result)
    return ToolResult(error=f"{outcome.error}: {outcome.message}")


def _failed(output: Json, outcomes: Sequence[Outcome]) -> Exchange | None:
    """What is wrong with an output, by the first tool that failed with it."""
    for outcome in outcomes:
        if isinstance(outcome, ToolFailed):
            problem = f"Tool {outcome.tool} failed with it: {outcome.error}: {outcome.message}"
            return Exchange(as_data(output), problem=problem)
    return None


# The longest name of a tool that all providers take.
LONGEST = 64

_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def plainly(name: str) -> str:
    """A name as letters, digits, `_` and `-`."""
    return _OTHER.sub("_", name)[:LONGEST] or "_"


def spelled(names: Iterable[str]) -> dict[str, str]:
    """Each name as letters, digits, `_` and `-`; a number tells apart what would be the same."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = plainly(name)
        numbered = (f"{plain[: LONGEST - 4]}_{number}" for number in count(2))
        found[name] = next(each for each in chain((plain,), numbered) if each not in taken)
        taken.add(found[name])
    return found


# What a model is told when nobody has spoken since it did: providers want a word from a user.
GO_ON = "Go on."

# What stands around the problem when an answer was not of the form that was asked for.
WRONG, AGAIN = "That is not what was asked for. ", "\nAnswer again."


class Own(NamedTuple):
    """Words of the model itself."""

    text: str


class OthersMessage(NamedTuple):
    """Words of somebody else."""

    text: str


class Called(NamedTuple):
    """A tool that the model called, by the name that it knows."""

    id: str
    name: str
    arguments: dict[str, Json]


class Returned(NamedTuple):
    """What such a call gave, or why it failed: by the text alone, as libraries put words of their
    own around what they are told is an error."""

    id: str
    name: str
    text: str


Part = Own | OthersMessage | Called | Returned


def dialogue_of(task: Task, names: Mapping[str, str]) -> list[Part]:
    """What was said, by whom, and what came of this turn's calls; somebody else has the last word.

    `names` says how tools are called there.
    """
    parts: list[Part] = [_said(task.agent, message) for message in task.transcript]
    for number, exchange in enumerate(task.exchanges):
        parts += exchanged(exchange, number, names)
    if _is_left_alone(task):
        parts.append(OthersMessage(GO_ON))
    return parts


def added_to(task: Task) -> tuple[str, ...]:
    """The texts that a model is shown and the task does not hold, in order."""
    added = [each for exchange in task.exchanges if exchange.problem for each in (WRONG, AGAIN)]
    if _is_left_alone(task):
        added.append(GO_ON)
    if task.output is not None and (around := around_form(task.output)):
        added.append(around)
    return tuple(added)


def _is_left_alone(task: Task) -> bool:
    """Whether nobody has spoken since the model did, or at all."""
    for exchange in reversed(task.exchanges):
        if exchange.calls or exchange.problem:
            return False
        if exchange.text:
            return True
    return not task.transcript or task.transcript[-1].author == task.agent


def _said(agent: str, message: Message) -> Part:
    """A message: the agent's own words, those of who is served, or another agent's by its name."""
    if message.author == agent:
        return Own(message.text)
    is_served = message.author in (USER, WORKFLOW)
    return OthersMessage(message.text if is_served else f"{message.author}: {message.text}")


def exchanged(exchange: Exchange, number: int, names: Mapping[str, str]) -> Iterator[Part]:
    """What the model said in an earlier call of the turn, and what came of it."""
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
    """What tells the calls of an exchange apart, also where their provider did not."""
    taken: set[str] = {""}
    for n, call in enumerate(exchange.calls):
        yield f"call_{number}_{n}" if call.id in taken else call.id
        taken.add(call.id)


# What arguments are called that are no data.
UNREAD = "INVALID_JSON"


def read_arguments(given: str | Mapping[str, Any]) -> dict[str, Json]:
    """The arguments that a model wrote for a call, or a library read; what is no data is left to
    the tool, as such."""
    try:
        text = given if isinstance(given, str) else json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        return {UNREAD: preview(given)}
    try:
        found = as_object(msgspec.json.decode(text or "{}"))
    except (ValueError, RecursionError):
        found = None
    return {UNREAD: text} if found is None else found
