"""Which hooks run at a point of the lifecycle, in which order, and which are skipped."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.hooks.logic import hooks_after, hooks_at, order_hooks, read_hooks, skip_reason
from turnloom.hooks.spec import TRIGGERS, Hooks
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.variables.logic.conditions import parse_condition


def ordered(*declared: dict[str, Any]) -> tuple[Hooks, list[str]]:
    """The hooks as they would run, and the codes of the problems with them."""
    base = {"trigger": "before_agent", "agent": None, "file": "h.py"}
    value = [{**base, **each} for each in declared]
    report, document = Report("Flow"), DeclarationFile("tools.yaml", value, "")
    checked = read_hooks(report, document, DocumentEntry((), value))
    conditions = {
        number: parse_condition(each.declared.when)
        for number, each in enumerate(checked)
        if each.declared.when
    }
    hooks = order_hooks(report, document, checked, conditions)
    return hooks, [problem.code for problem in report.problems]


def names(hooks: Hooks, trigger: str = "before_agent") -> list[str]:
    return [hook.name for hook in hooks[trigger]]


@st.composite
def acyclic(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Hooks in any order, each of which may run after some that come before it in another order."""
    hooks: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 8))):
        known = [each["function"] for each in hooks]
        after = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        hooks.append({"function": f"f{number}", "after": after})
    return draw(st.permutations(hooks))


@given(acyclic())
def test_every_hook_runs_behind_those_it_follows_and_else_as_declared(
    declared: list[dict[str, Any]],
) -> None:
    hooks, problems = ordered(*declared)
    order = names(hooks)
    assert problems == []
    assert sorted(order) == sorted(each["function"] for each in declared)
    after = {each["function"]: each["after"] for each in declared}
    for place, name in enumerate(order):
        assert set(after[name]) <= set(order[:place])
    waiting = [each["function"] for each in declared]
    for place, name in enumerate(order):
        ready = next(each for each in waiting if set(after[each]) <= set(order[:place]))
        assert name == ready, "the first declared one that can run does"
        waiting.remove(name)


def test_without_dependencies_the_order_is_the_declared_one() -> None:
    hooks, _ = ordered(*({"function": name} for name in "cab"))
    assert names(hooks) == ["c", "a", "b"]


@pytest.mark.parametrize("circle", [["a"], ["b", "a"], ["b", "c", "a"]])
def test_a_circle_is_a_problem(circle: list[str]) -> None:
    """`circle[n]` is what the n-th hook runs after."""
    _, problems = ordered(
        {"function": "free"},
        {"function": "behind", "after": ["a"]},
        *({"function": name, "after": [other]} for name, other in zip("abc", circle, strict=False)),
    )
    assert problems == ["W053"]


def test_triggers_do_not_mix() -> None:
    hooks, problems = ordered(
        {"function": "a"}, {"function": "b", "trigger": "after_agent", "after": "a"}
    )
    assert problems == ["W052"]
    assert (names(hooks), names(hooks, "after_agent")) == (["a"], ["b"])
    assert set(hooks) <= set(TRIGGERS)


def test_hooks_of_an_agent_and_of_all() -> None:
    hooks, _ = ordered(
        {"function": "all"}, {"function": "a", "agent": "A"}, {"function": "b", "agent": "B"}
    )
    assert [hook.name for hook in hooks_at(hooks, "before_agent", "A")] == ["all", "a"]
    assert hooks_at(hooks, "after_agent", "A") == []


def test_which_hooks_run_after_which_end() -> None:
    chat = {"trigger": "after_chat"}
    hooks, _ = ordered(
        {"function": "default", **chat},
        *({"function": on, "on": on, **chat} for on in ("success", "failure", "always")),
    )
    found = {
        status: [hook.name for hook in hooks_after(hooks, status)]
        for status in ("finished", "failed", "cancelled")
    }
    assert found == {
        "finished": ["default", "success", "always"],
        "failed": ["failure", "always"],
        "cancelled": ["failure", "always"],
    }


def test_why_a_hook_is_skipped() -> None:
    hooks, _ = ordered(
        {"function": "load"},
        {"function": "weigh"},
        {"function": "tell", "after": ["load", "weigh"], "when": "done is true"},
    )
    hook = hooks["before_agent"][2]
    both = {"load", "weigh"}
    assert skip_reason(hook, {"done": True}, {}, both) == ""
    for succeeded in ({"weigh"}, set[str]()):
        why = skip_reason(hook, {"done": True}, {}, succeeded)
        assert {name for name in both if name in why} == both - succeeded
    untrue, absent = (
        skip_reason(hook, {"done": False}, {}, both),
        skip_reason(hook, {}, {"done": "x1"}, both),
    )
    assert "done is true" in untrue and "False" in untrue
    assert "done is true" in absent and "x1" in absent
