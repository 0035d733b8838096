"""Detect loops, and decide how to recover."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    ModelFailed,
    OutputRefused,
    QuestionAsked,
    ToolCalled,
    ToolFailed,
)
from turnloom.agents.spec import Question, RunState
from turnloom.assembly.logic import apart, piece
from turnloom.assembly.logic.retrieval import unit
from turnloom.assembly.spec import Piece
from turnloom.guards.events import LoopDetectedFact, Scores
from turnloom.guards.spec import LoopDetection, TurnDigest, Watch, Weights
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_data
from turnloom.log.spec import Fact
from turnloom.variables.events import ContextChanged

# Too few turns for a verdict.
INSUFFICIENT = "insufficient"

# The number of characters of a turn's text that are compared.
COMPARED = 1000

_FAILURES = (ToolFailed, OutputRefused, ModelFailed)


class LoopVerdict(NamedTuple):
    """The kind of loop, if the turns are one, with the turns and the scores."""

    loop: str
    entries: Sequence[TurnDigest]
    scores: Scores

    @property
    def is_loop(self) -> bool:
        """Whether the turns are a loop."""
        return self.loop not in ("", INSUFFICIENT)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents of the turns."""
        return tuple(sorted({each.agent for each in self.entries}))


def digest_turn(
    turn: int,
    agent: str,
    facts: Iterable[Fact],
    inputs: Sequence[Json],
    before: Sequence[TurnDigest],
) -> TurnDigest:
    """The digest of a turn with some inputs, from its recorded facts.

    Its action is the tools that it called, or else its text. It made progress if a variable
    changed, or if its action is new and nothing failed.
    """
    facts = list(facts)
    called = [(each.tool, each.arguments) for each in facts if isinstance(each, ToolCalled)]
    texts = [*_texts(facts)]
    action = digest(as_data([agent, called or texts, *inputs]))
    has_failed = any(isinstance(each, _FAILURES) for each in facts)
    is_new = all(each.action != action for each in before)
    return TurnDigest(
        turn,
        agent,
        action,
        "\n".join(texts)[:COMPARED],
        progress=_changed(facts) or (is_new and not has_failed),
        frustrated=has_failed or any(isinstance(each, QuestionAsked) for each in facts),
    )


def _texts(facts: Iterable[Fact]) -> Iterator[str]:
    for fact in facts:
        if isinstance(fact, AgentText):
            yield fact.text.strip()
        elif isinstance(fact, AgentOutput):
            yield as_data(fact.output)


def _changed(facts: Iterable[Fact]) -> bool:
    return any(isinstance(each, ContextChanged) and each.value != each.previous for each in facts)


def needs_similarity(detection: LoopDetection, entries: Sequence[TurnDigest]) -> bool:
    """Whether texts must be compared, which takes a model, to detect a loop."""
    return detection.similarity is not None and not detect(detection, entries).loop


def similarity(vectors: Sequence[Sequence[float]]) -> float:
    """The similarity of texts by their vectors: the mean over all pairs, from 0 to 1."""
    units = [unit(each) for each in vectors]
    pairs = [
        sum(a * b for a, b in zip(one, other, strict=True)) if one and other else 0.0
        for one, other in combinations(units, 2)
    ]
    return min(1.0, max(0.0, sum(pairs) / len(pairs))) if pairs else 0.0


def detect(
    detection: LoopDetection, entries: Sequence[TurnDigest], semantic: float | None = None
) -> LoopVerdict:
    """Whether the last turns are a loop, and of which kind.

    The last `window` of them count; for oscillation, all that were kept.
    """
    recent = entries[-detection.window :]
    if len(recent) < detection.window:
        return LoopVerdict(INSUFFICIENT, recent, Scores())
    period, oscillation = _oscillation(entries)
    scores = _scored(detection.weights, recent, oscillation, semantic or 0.0)
    if scores.repetition == 1:
        return LoopVerdict("exact_repetition", recent, scores)
    if oscillation == 1:
        return LoopVerdict("oscillation", entries[-2 * period :], scores)
    if scores.no_progress == 1:
        return LoopVerdict("no_progress", recent, scores)
    if detection.similarity is not None and scores.semantic >= detection.similarity:
        return LoopVerdict("semantic_repetition", recent, scores)
    if scores.confidence >= detection.threshold:
        return LoopVerdict(_dominant(detection.weights, scores), recent, scores)
    return LoopVerdict("", recent, scores)


def _oscillation(entries: Sequence[TurnDigest]) -> tuple[int, float]:
    """The period after which turns repeat, and the share of turns that do.

    Any period counts that fits twice into the kept turns; identical turns do not oscillate.
    """
    actions = [each.action for each in entries]
    found = [(0.0, 0)]
    for period in range(2, len(actions) // 2 + 1):
        first, second = actions[-2 * period : -period], actions[-period:]
        if len(set(second)) > 1:
            again = sum(one == other for one, other in zip(first, second, strict=True))
            found.append((again / period, -period))
    share, period = max(found)
    return -period, share


def _scored(
    weights: Weights, recent: Sequence[TurnDigest], oscillation: float, semantic: float
) -> Scores:
    size = len(recent)
    ((_, most),) = Counter(each.action for each in recent).most_common(1)
    signs = {
        "repetition": most / size,
        "semantic": semantic,
        "no_progress": sum(not each.progress for each in recent) / size,
        "frustration": sum(each.frustrated for each in recent) / size,
    }
    confidence = sum(getattr(weights, name) * score for name, score in signs.items())
    return Scores(oscillation=oscillation, confidence=round(confidence, 9), **signs)


# The kind of loop that each sign indicates.
_LOOPS = {
    "semantic": "semantic_repetition",
    "no_progress": "no_progress",
    "repetition": "exact_repetition",
    "frustration": "frustration",
}


def _dominant(weights: Weights, scores: Scores) -> str:
    """The kind of loop with the highest weighted score; of equals, the first."""
    shares = {sign: getattr(weights, sign) * getattr(scores, sign) for sign in _LOOPS}
    return _LOOPS[max(shares, key=lambda sign: shares[sign])]


# The asker of questions about loops.
ASKER = "loop_detection"

# The answers that continue and stop the run.
CONTINUE, STOP = "continue", "stop"

# The hint to agents, by strategy.
HINTS = {
    "inject_variation": (
        "Your last turns repeat each other. Do it differently now: with another tool, other "
        "arguments or another approach. If there is none, say what stands in the way."
    ),
    "decompose": (
        "Your last turns made no progress. Split the task into smaller steps, name them, "
        "and do only the first one."
    ),
    "synthesise": (
        "The last turns go back and forth. Sum up what is settled and what is open, then decide."
    ),
}


def recover(
    detection: LoopDetection, watch: Watch, verdict: LoopVerdict, others: Sequence[str]
) -> LoopDetectedFact:
    """The recovery from a loop; `others` are the agents that could take the turn instead."""
    recoveries = watch.recoveries.get(name_of(verdict.loop, verdict.agents), 0)
    is_enough = recoveries >= detection.max_resets
    wanted = detection.then if is_enough else getattr(detection.strategies, verdict.loop)
    has_others = any(name not in verdict.agents for name in others)
    strategy = "inject_variation" if wanted == "rotate_agent" and not has_others else wanted
    return LoopDetectedFact(
        verdict.loop,
        verdict.agents,
        tuple(each.turn for each in verdict.entries),
        verdict.scores,
        strategy=strategy,
        instead_of=wanted if strategy != wanted else "",
        hint=HINTS.get(strategy, ""),
        recoveries=recoveries,
    )


def name_of(loop: str, agents: Sequence[str]) -> str:
    """The name that identifies a loop."""
    return f"{loop} of {', '.join(agents)}"


def describe_loop(fact: LoopDetectedFact) -> str:
    """The loop and its turns, in words."""
    turns = f"turns {fact.turns[0]} to {fact.turns[-1]}" if fact.turns else "its turns"
    return f"{name_of(fact.loop, fact.agents)} in {turns}"


def escalation(state: RunState) -> Question | None:
    """The question to a person about a loop, asked before anything else begins."""
    watch: Watch | None = state.guards
    if watch is None or watch.escalation is None:
        return None
    asked, schema = watch.escalation, {"type": "string"}
    return Question(asked.question, asked.prompt, state.user, ASKER, schema=schema)


def hint_piece(state: RunState, turn: int) -> Piece | None:
    """The hint that an agent gets in a turn because of a loop."""
    watch: Watch | None = state.guards
    hint = watch.told.get(turn) if watch is not None else None
    if hint is None:
        return None
    return apart(piece("hint", "guards.loop_detection", hint.text, hint.reason))


def substitute(state: RunState, target: str, roster: Sequence[str]) -> str | None:
    """The agent that replaces one in a loop: the next in the roster."""
    watch: Watch | None = state.guards
    if watch is None or target not in watch.avoided:
        return None
    place = roster.index(target)
    ring = (*roster[place:], *roster[:place])
    return next((name for name in ring if name not in watch.avoided), None)
