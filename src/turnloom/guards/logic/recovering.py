"""What is done about a loop."""

from collections.abc import Sequence

from turnloom.agents.spec import Question, RunState
from turnloom.assembly.logic import apart, piece
from turnloom.assembly.spec import Piece
from turnloom.guards.events import LoopDetected
from turnloom.guards.logic.looping import Verdict
from turnloom.guards.spec import LoopDetection, Watch

# Who asks people about loops.
ASKER = "loop_detection"

# What a person answers who wants the run to go on as it is, and to end.
CONTINUE, STOP = "continue", "stop"

# What agents are told, by strategy.
HINTS = {
    "inject_variation": (
        "Your last turns repeat each other. Do it differently now: with another tool, other "
        "arguments or another approach. If there is none, say what stands in the way."
    ),
    "decompose": (
        "Your last turns brought nothing forward. Split the task into smaller steps, name them, "
        "and do only the first one."
    ),
    "synthesise": (
        "The last turns go back and forth. Sum up what is settled and what is open, then decide."
    ),
}


def recover(
    detection: LoopDetection, watch: Watch, verdict: Verdict, others: Sequence[str]
) -> LoopDetected:
    """What is done about a loop; `others` are those whose turn it could be instead."""
    recoveries = watch.recoveries.get(name_of(verdict.loop, verdict.agents), 0)
    is_enough = recoveries >= detection.max_resets
    wanted = detection.then if is_enough else getattr(detection.strategies, verdict.loop)
    has_others = any(name not in verdict.agents for name in others)
    strategy = "inject_variation" if wanted == "rotate_agent" and not has_others else wanted
    return LoopDetected(
        verdict.loop,
        verdict.agents,
        tuple(each.turn for each in verdict.entries),
        verdict.scores,
        strategy,
        wanted if strategy != wanted else "",
        HINTS.get(strategy, ""),
        recoveries,
    )


def name_of(loop: str, agents: Sequence[str]) -> str:
    """What tells one loop from another."""
    return f"{loop} of {', '.join(agents)}"


def told(fact: LoopDetected) -> str:
    """What goes round in circles, and since when."""
    turns = f"turns {fact.turns[0]} to {fact.turns[-1]}" if fact.turns else "its turns"
    return f"{name_of(fact.loop, fact.agents)} in {turns}"


def escalation(state: RunState) -> Question | None:
    """What a person is to be asked about a loop, before anything else begins."""
    watch: Watch | None = state.guards
    if watch is None or watch.escalation is None:
        return None
    asked, schema = watch.escalation, {"type": "string"}
    return Question(asked.question, asked.prompt, state.user, ASKER, schema=schema)


def hint_piece(state: RunState, turn: int) -> Piece | None:
    """What an agent is told in a turn because of a loop."""
    watch: Watch | None = state.guards
    hint = watch.told.get(turn) if watch is not None else None
    if hint is None:
        return None
    return apart(piece("hint", "guards.loop_detection", hint.text, hint.reason))


def instead(state: RunState, target: str, roster: Sequence[str]) -> str | None:
    """Who is to speak in place of an agent that goes round in circles; the next in the roster."""
    watch: Watch | None = state.guards
    if watch is None or target not in watch.avoided:
        return None
    place = roster.index(target)
    ring = (*roster[place:], *roster[:place])
    return next((name for name in ring if name not in watch.avoided), None)
