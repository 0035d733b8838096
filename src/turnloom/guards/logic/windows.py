"""How much of a model's window a call takes, and what takes it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnloom.agents.spec import Exchange
from turnloom.assembly.events import FrameAssembled, Segment
from turnloom.assembly.logic import estimate
from turnloom.guards.events import WindowNeared

# The share of a window from which on a run warns.
NEAR = 0.8

# How many parts of a call are named.
NAMED = 3

# What a call is shown beside the segments of its frame.
HISTORY = "what was said"
EXCHANGES = "calls and results of this turn"

# How an agent is shown less.
POLICY = (
    "Declare what is shown, within a budget: `context.sources` and `context.budget` of an agent in "
    "a folder, `with_sources(…, budget=Budget(…))` on a board, `context=[…], budget=Budget(…)` of "
    "a step. `from_history(last=…)`, or `history: {last: …}`, shows the last of what was said."
)


class CallSize(NamedTuple):
    """How many tokens a call is shown, counted by whom, and the largest parts of them."""

    tokens: int
    counter: str
    largest: Mapping[str, int]


def call_size(
    shown: FrameAssembled, segments: Sequence[Segment], exchanges: Sequence[Exchange]
) -> CallSize:
    """The size of a call that is shown a frame, and what was exchanged in its turn."""
    parts: Counter[str] = Counter()
    for each in segments:
        parts[each.origin] += each.tokens
    exchanged = estimate(msgspec.json.encode(exchanges).decode()) if exchanges else 0
    parts[HISTORY] += shown.history.tokens
    parts[EXCHANGES] += exchanged
    return CallSize(shown.tokens + exchanged, shown.counter, largest_of(parts))


def largest_of(parts: Mapping[str, int]) -> dict[str, int]:
    """The parts that have the most tokens, the largest first."""
    return {name: tokens for name, tokens in _ranked(parts)[:NAMED] if tokens}


def is_near(tokens: int, window: int) -> bool:
    """Whether so many tokens take most of a window."""
    return tokens >= NEAR * window


def told_size(size: CallSize) -> str:
    """What a call is shown, in a sentence."""
    return f"The call is shown {size.tokens:,} tokens ({size.counter}): {_listed(size.largest)}."


def told_near(fact: WindowNeared) -> str:
    """How much of a window is taken, and by what."""
    what = f"{fact.tokens:,} of the {fact.window:,} tokens in the window of its model"
    return f"{fact.agent} is shown {what}: {_listed(fact.largest)}"


def _listed(largest: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {tokens:,}" for name, tokens in _ranked(largest))


def _ranked(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(parts.items(), key=lambda part: -part[1])
