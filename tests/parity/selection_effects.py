"""What each field does that is declared about guards."""

from typing import Any

from tests.parity.effects import DEFINITIONS, SETUP, Effect, Path, codes, data, spoke
from tests.parity.runs import Seen

GUARDS: Path = (*SETUP, "guards")
SELECTION: Path = (*GUARDS, "selection")
CATEGORY: Path = (*SELECTION, "category")

# With this seed, B is chosen first in each of the categories below.
BOTH = {"candidates": ["A", "B"], "seed": 49}
CHOSEN = {GUARDS: {"selection": BOTH}}
ONLY_A = {GUARDS: {"selection": {**BOTH, "exclude": ["B"]}}}
OUT = {"type": "array", "source": {"type": "static", "value": ["B"]}}


def in_category(**said: str) -> dict[Path, Any]:
    """A selection whose category is said so."""
    return {GUARDS: {"selection": {**BOTH, "category": said}}}


def believed(seen: Seen) -> list[list[tuple[float, float]]]:
    """What was believed of the candidates, choice by choice."""
    made = seen.data("selection.made", "candidates")
    return [[(each.alpha, each.beta) for each in candidates] for candidates in made]


def costs(seen: Seen) -> list[float]:
    """What the candidates of the first choice cost."""
    return [each.cost for each in seen.data("selection.made", "candidates")[0]]


SELECTION_EFFECTS: dict[str, Effect] = {
    "Guards.selection": Effect(SELECTION, BOTH, spoke, "A A B", "B", {GUARDS: {}}),
    "Selection.candidates": Effect(
        (*SELECTION, "candidates"), ["A", "Z"], codes, [], ["W020"], CHOSEN
    ),
    "Selection.category": Effect(
        CATEGORY, "refunds", data("selection.made", "category"), ["general"], ["refunds"], CHOSEN
    ),
    "Selection.seed": Effect(
        (*SELECTION, "seed"), 53, data("selection.made", "chance"), ["49/0/0"], ["53/0/0"], CHOSEN
    ),
    "Selection.prior": Effect(
        (*SELECTION, "prior"), [1, 3], believed, [[(2, 2)] * 2], [[(1, 3)] * 2], CHOSEN
    ),
    "Selection.decay": Effect(
        (*SELECTION, "decay"),
        0.5,
        believed,
        [[(n, 2)] for n in (2, 3, 4, 5, 6, 7)],
        [[(n, 2)] for n in (2, 3, 3.5, 3.75, 3.875, 3.9375)],
        ONLY_A,
    ),
    "Selection.costs": Effect((*SELECTION, "costs"), {"B": 0.5}, costs, [0, 0], [0, 0.5], CHOSEN),
    "Selection.exclude": Effect((*SELECTION, "exclude"), ["B"], spoke, "B", "A A A A A A", CHOSEN),
    "Selection.exclude_variable": Effect(
        (*SELECTION, "exclude_variable"),
        "out",
        spoke,
        "B",
        "A A A A A A",
        {**CHOSEN, (*DEFINITIONS, "out"): OUT},
    ),
    "Selection.score": Effect(
        (*SELECTION, "score"), "half", data("selection.judged", "credit"), [1.0], [0.5], CHOSEN
    ),
    "Category.constant": Effect(
        (*CATEGORY, "constant"),
        "other",
        data("selection.made", "category"),
        ["one"],
        ["other"],
        in_category(constant="one"),
    ),
    "Category.variable": Effect(
        (*CATEGORY, "variable"),
        "user_id",
        data("selection.made", "category"),
        ["beta"],
        ["u1"],
        in_category(variable="tier"),
    ),
    "Category.function": Effect(
        (*CATEGORY, "function"),
        "by_user",
        data("selection.made", "category"),
        ["beta"],
        ["u1"],
        in_category(function="by_tier"),
    ),
}
