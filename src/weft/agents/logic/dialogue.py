"""What a model is shown of a turn, before a library has it in its own words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weft.agents.spec import USER, WORKFLOW, Exchange, Task
from weft.assembly.spec import Message
from weft.kernel.values import as_data

# What a model is told when nobody has spoken since it did: providers want a word from a user.
GO_ON = "Go on."


@dataclass(frozen=True, slots=True)
class Said:
    """A text: of the model itself, or of somebody else."""

    text: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class Called:
    """A tool that the model called."""

    id: str
    name: str
    arguments: dict[str, Any]
    is_own: bool = True


@dataclass(frozen=True, slots=True)
class Gave:
    """What a call gave, or why it gave nothing."""

    id: str
    name: str
    text: str
    is_error: bool
    is_own: bool = False


Part = Said | Called | Gave


def dialogue(task: Task, names: Mapping[str, str]) -> list[Part]:
    """What was said, by whom, and what came of this turn's calls; the last word is not the model's.

    `names` says how tools are called there.
    """
    found: list[Part] = [_said(task.agent, message) for message in task.transcript]
    for number, exchange in enumerate(task.exchanges):
        found += _exchanged(exchange, number, names)
    if not found or found[-1].is_own:
        found.append(Said(GO_ON, is_own=False))
    return found


def _said(agent: str, message: Message) -> Said:
    """A message: the agent's own words, those of who is served, or another agent's by its name."""
    if message.author == agent:
        return Said(message.text, is_own=True)
    is_served = message.author in (USER, WORKFLOW)
    return Said(message.text if is_served else f"{message.author}: {message.text}", is_own=False)


def _exchanged(exchange: Exchange, number: int, names: Mapping[str, str]) -> Iterator[Part]:
    """What the model said in an earlier call of the turn, and what came of it."""
    if exchange.text:
        yield Said(exchange.text, is_own=True)
    called = [
        Called(call.id or f"call_{number}_{n}", names.get(call.tool, call.tool), call.arguments)
        for n, call in enumerate(exchange.calls)
    ]
    yield from called
    for call, result in zip(called, exchange.results, strict=True):
        given = result.value if isinstance(result.value, str) else as_data(result.value)
        yield Gave(call.id, call.name, result.error or given, bool(result.error))
    if exchange.problem:
        told = f"That is not what was asked for. {exchange.problem}\nAnswer again."
        yield Said(told, is_own=False)
