"""What is kept of a run between two turns comes back as it was."""

from turnloom.agents.spec import RunState, Toolkit
from turnloom.board.spec import TypeRegistry
from turnloom.guards.spec import Amounts, Entry, Escalation, Guards, Hint, RunBudget, Watch
from turnloom.reaction.logic.plans import make_plan
from turnloom.reaction.logic.reacting import Reacting
from turnloom.reaction.spec.tray import Tray, Work
from turnloom.runtime.logic import freeze, fresh, thaw
from turnloom.testing import FakeClock
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

PLAN = make_plan("b", [], 9, TypeRegistry())
BOARD = Reacting(PLAN, Variables(), Triggers({}), {}, Toolkit(), {})


def test_a_board_with_failed_turns_comes_back() -> None:
    state = RunState("r", progress=Tray(failed={3: Work("a", "s", ("x",), "x")}))
    assert thaw(BOARD, freeze(state)) == state


def test_what_guards_know_comes_back() -> None:
    state = fresh("r", BOARD, Guards(budget=RunBudget(steps=3)))
    state.guards = Watch(
        Amounts(2, 30, cost=0.5),
        {"t9/model": Amounts(model_calls=1)},
        4.5,
        FakeClock().now(),
        "scarce",
        [Entry(1, "A", "x", "said", False, True)],
        {"oscillation of A, B": 2},
        {"A": Hint("Sum up.", "a loop")},
        {2: Hint("Vary.", "a loop")},
        ("A", "B"),
        Escalation("t3/loop.1/ask", "Go on?", ("A",)),
    )
    assert thaw(BOARD, freeze(state)) == state


def test_a_run_without_guards_keeps_nothing_of_them() -> None:
    state = fresh("r", BOARD)
    assert state.guards is None
    assert thaw(BOARD, freeze(state)) == state
