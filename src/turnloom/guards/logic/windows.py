"""The share of a model's context window that a call takes, and its largest parts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnloom.agents.spec import Exchange
from turnloom.assembly.events import FrameAssembled, Segment
from turnloom.assembly.logic import estimate
from turnloom.guards.events import WindowNeared

# The share of a window at which a run warns.
NEAR = 0.8

# The number of parts named.
NAMED = 3

# The parts of a call outside its frame's segments.
HISTORY = "what was said"
EXCHANGES = "calls and results of this turn"

# The remedy.
POLICY = (
    "Limit the context with a budget: `context.sources` and `context.budget` of an agent in a "
    "folder, `with_sources(…, budget=Budget(…))` on a board, `context=[…], budget=Budget(…)` of a "
    "step. `from_history(last=…)`, or `history: {last: …}`, limits the history."
)


class CallSize(NamedTuple):
    """The tokens of a call's input, the token counter, and the largest parts."""

    tokens: int
    counter: str
    largest: Mapping[str, int]


def call_size(
    shown: FrameAssembled, segments: Sequence[Segment], exchanges: Sequence[Exchange]
) -> CallSize:
    """The size of a call with a frame and the tool calls of its turn."""
    parts: Counter[str] = Counter()
    for each in segments:
        parts[each.origin] += each.tokens
    exchanged = estimate(msgspec.json.encode(exchanges).decode()) if exchanges else 0
    parts[HISTORY] += shown.history.tokens
    parts[EXCHANGES] += exchanged
    return CallSize(shown.tokens + exchanged, shown.counter, largest_of(parts))


def largest_of(parts: Mapping[str, int]) -> dict[str, int]:
    """The parts with the most tokens, largest first."""
    return {name: tokens for name, tokens in _ranked(parts)[:NAMED] if tokens}


def is_near(tokens: int, window: int) -> bool:
    """Whether `tokens` take most of a window."""
    return tokens >= NEAR * window


def describe_size(size: CallSize) -> str:
    """The size of a call, in a sentence."""
    return f"The call has {size.tokens:,} tokens ({size.counter}): {_listed(size.largest)}."


def describe_window(fact: WindowNeared) -> str:
    """The share of a window that is taken, and its largest parts."""
    what = f"{fact.tokens:,} of the {fact.window:,} tokens in its model's context window"
    return f"{fact.agent} uses {what}: {_listed(fact.largest)}"


def _listed(largest: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {tokens:,}" for name, tokens in _ranked(largest))


def _ranked(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(parts.items(), key=lambda part: -part[1])
