"""What each field does that is declared about guards."""

from typing import Any

from tests.parity.effects import RULES, SETUP, Effect, Path, data, said, spoke
from tests.parity.tool_effects import calling

GUARDS: Path = (*SETUP, "guards")
BUDGET: Path = (*GUARDS, "budget")
PRICE: Path = (*BUDGET, "prices", "*")
LOOPS: Path = (*GUARDS, "loop_detection")
STRATEGIES: Path = (*LOOPS, "strategies")
AGAIN = [{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}]
DONE, FAILED = ["done"] * 2, ["failed"]

statuses = data("turn.finished", "status")
loops = data("loop.detected", "loop")
strategies = data("loop.detected", "strategy")


def guarded(guards: dict[str, Any], *lines: Any, turns: int = 2) -> dict[Path, Any]:
    """A says lines in so many turns of its own, under guards."""
    entries = [{"agent": "A", "file": "work.py", "function": "add"}]
    entries.append({**entries[0], "function": "confirm", "tool_type": "UI_Tool", "ui": {}})
    return {
        SETUP: {"initial_agent": "A", "max_turns": turns, "guards": guards},
        RULES: AGAIN,
        ("tools",): {"tools": entries},
        ("script",): {"agents": {"A": [*lines, *(f"Line {n}." for n in range(9))]}},
    }


def budgeted(*lines: Any, **budget: Any) -> dict[Path, Any]:
    return guarded({"budget": budget}, *lines)


def watched(*lines: Any, turns: int = 6, **detection: Any) -> dict[Path, Any]:
    usual = {"window": 2, "similarity": None, "strategies": {}}
    return guarded({"loop_detection": {**usual, **detection}}, *lines, turns=turns)


def priced(input: float, output: float) -> dict[str, Any]:
    return {"*": {"input": input, "output": output}}


def asking(n: int) -> dict[str, Any]:
    return {"calls": [*calling("confirm")["calls"], *calling("add", a=n)["calls"]]}


SAME = watched(*["Again."] * 9)
MOSTLY = watched("One.", "One.", "Two.", turns=3, window=3)
FLIGHTS = [f"I would book the flight to Rome on the {n}th of May." for n in (4, 5, 6)]
STUCK = [each for n in (1, 2) for each in (calling("add", a=-n), f"Try {n}.")]
ASKED = [each for n in (1, 2) for each in (asking(n), f"Asked {n}.")]
ONLY_FRUSTRATION = {"repetition": 0, "semantic": 0, "no_progress": 0, "frustration": 1}
ONLY_REPETITION = {"repetition": 1, "semantic": 0, "no_progress": 0, "frustration": 0}
VARIED = ["inject_variation"] * 3

GUARD_EFFECTS: dict[str, Effect] = {
    "Orchestrator.guards": Effect(GUARDS, {"budget": {"steps": 1}}, spoke, "A A", "A", guarded({})),
    "Guards.budget": Effect(BUDGET, {"steps": 1}, spoke, "A A", "A", guarded({})),
    "Guards.loop_detection": Effect(
        LOOPS,
        {"window": 2, "similarity": None},
        loops,
        [],
        ["exact_repetition"],
        guarded({}, "Again.", "Again."),
    ),
    # budget
    "RunBudget.steps": Effect((*BUDGET, "steps"), 1, spoke, "A A", "A", budgeted()),
    "RunBudget.tokens": Effect((*BUDGET, "tokens"), 1000, statuses, DONE, FAILED, budgeted()),
    "RunBudget.model_calls": Effect(
        (*BUDGET, "model_calls"), 1, said, ["Line 0.", "Line 1."], ["Line 0."], budgeted()
    ),
    "RunBudget.tool_calls": Effect(
        (*BUDGET, "tool_calls"), 1, statuses, DONE, FAILED, budgeted(asking(1))
    ),
    "RunBudget.cost": Effect(
        (*BUDGET, "cost"), 0.5, statuses, DONE, FAILED, budgeted(cost=100, prices=priced(0, 1000))
    ),
    "RunBudget.prices": Effect(
        (*BUDGET, "prices"),
        priced(0, 1000),
        statuses,
        DONE,
        FAILED,
        budgeted(cost=0.5, prices=priced(0, 0)),
    ),
    "RunBudget.answer_tokens": Effect(
        (*BUDGET, "answer_tokens"),
        800,
        statuses,
        DONE,
        FAILED,
        budgeted(tokens=800, answer_tokens=1),
    ),
    "Price.input": Effect(
        (*PRICE, "input"), 1e6, statuses, DONE, FAILED, budgeted(cost=9, prices=priced(0, 0))
    ),
    "Price.output": Effect(
        (*PRICE, "output"), 1e6, statuses, DONE, FAILED, budgeted(cost=9, prices=priced(0, 0))
    ),
    # loop detection
    "LoopDetection.window": Effect(
        (*LOOPS, "window"),
        3,
        data("loop.detected", "turns"),
        [(1, 2), (3, 4), (5, 6)],
        [(1, 2, 3), (4, 5, 6)],
        SAME,
    ),
    "LoopDetection.similarity": Effect(
        (*LOOPS, "similarity"),
        0.5,
        loops,
        [],
        ["semantic_repetition"],
        watched(*FLIGHTS, turns=2),
    ),
    "LoopDetection.threshold": Effect(
        (*LOOPS, "threshold"), 0.3, loops, [], ["exact_repetition"], MOSTLY
    ),
    "LoopDetection.weights": Effect(
        (*LOOPS, "weights"),
        ONLY_REPETITION,
        loops,
        [],
        ["exact_repetition"],
        watched("One.", "One.", "Two.", turns=3, window=3, threshold=0.6),
    ),
    "LoopDetection.strategies": Effect(
        STRATEGIES, {"exact_repetition": "stop"}, strategies, VARIED, ["stop"], SAME
    ),
    "LoopDetection.max_resets": Effect(
        (*LOOPS, "max_resets"),
        1,
        strategies,
        VARIED,
        ["inject_variation", "escalate", "inject_variation"],
        SAME,
    ),
    "LoopDetection.then": Effect(
        (*LOOPS, "then"),
        "stop",
        strategies,
        ["escalate"] * 3,
        ["stop"],
        watched(*["Again."] * 9, max_resets=0),
    ),
    "Strategies.exact_repetition": Effect(
        (*STRATEGIES, "exact_repetition"), "stop", strategies, VARIED, ["stop"], SAME
    ),
    "Strategies.oscillation": Effect(
        (*STRATEGIES, "oscillation"),
        "stop",
        strategies,
        ["synthesise"],
        ["stop"],
        watched("One.", "Two.", "One.", "Two.", turns=4),
    ),
    "Strategies.no_progress": Effect(
        (*STRATEGIES, "no_progress"),
        "stop",
        strategies,
        ["decompose"],
        ["stop"],
        watched(*STUCK, turns=2),
    ),
    "Strategies.semantic_repetition": Effect(
        (*STRATEGIES, "semantic_repetition"),
        "stop",
        strategies,
        ["rotate_agent"],
        ["stop"],
        watched(*FLIGHTS, turns=2, similarity=0.5),
    ),
    "Strategies.frustration": Effect(
        (*STRATEGIES, "frustration"),
        "stop",
        strategies,
        ["decompose"],
        ["stop"],
        watched(*ASKED, turns=2, weights=ONLY_FRUSTRATION),
    ),
}
