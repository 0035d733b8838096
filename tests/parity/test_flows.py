"""Nothing that can be said of a flow is inert: every word has a test of what it does in a run.

The tests are those of `tests/flow`; here it is seen that there is one for each word, and that it
says the word.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest

from turnloom import AgentStep, Cache, Flow, Option, Path, Retry, Update, escalate_to
from turnloom.flow.logic.flows import FlowSettings
from turnloom.flow.spec.builder import StepSettings

AGENTS, APPROVALS, BRANCHES, CACHING, CONFIDENCE = (
    f"tests.flow.test_{each}"
    for each in ("agents", "approvals", "branches", "caching", "confidence")
)
FAILURES, FORKS, LOOPS, STATES, STEPS, SURROUNDINGS = (
    f"tests.flow.test_{each}"
    for each in ("failures", "forks", "loops", "states", "steps", "surroundings")
)
FORMS = "tests.parity.forms.flows"
BACKOFF = f"{FAILURES}:test_attempts_wait_longer_each_time_but_not_for_ever"
ORDER = f"{FAILURES}:test_handler_then_own_compensation_then_the_others_backwards_then_the_flow"
RECOVERED = f"{FAILURES}:test_a_handled_failure_lets_the_flow_go_on_with_recover"
SHOWN = f"{AGENTS}:test_a_budget_and_a_format_are_the_steps_own"
SURE = f"{STATES}:test_an_update_says_what_changes_and_how_sure_it_is"
LINEAR = f"{STATES}:test_each_step_is_taken_once_in_order_and_the_state_is_what_they_made"
LOOP = f"{LOOPS}:test_a_loop_ends_when_its_condition_holds_or_after_so_many_passes"
JOINED = f"{FORKS}:test_the_join_sees_how_each_path_ended"
ASKED = f"{APPROVALS}:test_an_approval_shows_its_context_and_options_and_waits"
PASSED_ON = f"{APPROVALS}:test_an_approval_is_passed_on_from_one_to_the_next"
OWN_OPTION = f"{APPROVALS}:test_an_option_of_ones_own_approves_or_rejects_as_it_says"
TYPED = f"{AGENTS}:test_a_step_gets_the_typed_answer_and_the_context"
HEARD = f"{AGENTS}:test_an_agent_hears_its_instructions_and_what_it_is_asked"
CAPPED = f"{AGENTS}:test_tools_are_called_so_often_and_what_they_gave_is_kept"
OWN_CACHE = f"{CACHING}:test_a_shared_result_counts_to_the_end_of_its_time"
LOW = f"{CONFIDENCE}:flow_with"

# What can be said of a step, and the test that shows what comes of it.
SETTINGS = {
    "name": f"{STEPS}:test_one_step_is_used_twice_under_two_names",
    "context": f"{AGENTS}:test_context_comes_before_what_is_asked_in_declared_order",
    "budget": SHOWN,
    "format": SHOWN,
    "retry": f"{FAILURES}:test_two_retries_are_three_attempts_with_the_same_state",
    "timeout": (
        f"{FAILURES}:test_a_step_that_takes_too_long_is_stopped_and_what_it_gives_late_is_nothing"
    ),
    "require_confidence": LOW,
    "on_low_confidence": LOW,
    "validate": f"{FAILURES}:test_a_guard_that_does_not_hold_fails_without_taking_the_step",
    "compensate": ORDER,
    "compensate_timeout": (
        f"{FAILURES}:test_a_compensation_that_hangs_is_stopped_and_the_rest_is_done"
    ),
    "on_failure": ORDER,
    "recover": RECOVERED,
    "cache": f"{CACHING}:test_the_same_step_and_state_is_taken_once",
    "select": f"{AGENTS}:test_a_selection_picks_who_answers",
}

# What can be said in the calls of flows and paths.
CALLS = {
    "Flow.name": LINEAR,
    "Flow.state": LINEAR,
    "Flow.version": f"{SURROUNDINGS}:test_a_flow_says_its_version",
    "Flow.timeout": f"{FAILURES}:test_a_flow_that_takes_too_long_is_made_up_for",
    "Flow.variables": f"{SURROUNDINGS}:test_steps_read_and_write_variables",
    "Flow.hooks": f"{SURROUNDINGS}:test_hooks_run_around_the_run_and_around_turns",
    "Flow.guards": "tests.flow.test_guards:test_making_up_is_not_charged",
    "Flow.migrate": "tests.flow.test_migrating:test_a_state_is_what_migrate_makes_of_it",
    "start_with.step": LINEAR,
    "then.step": LINEAR,
    "finally_.step": LINEAR,
    "Path.steps": f"{BRANCHES}:test_a_path_that_completes_ends_the_flow",
    "branch.on": f"{BRANCHES}:test_true_is_not_one",
    "branch.cases": f"{BRANCHES}:test_true_is_not_one",
    "branch.otherwise": f"{BRANCHES}:test_true_is_not_one",
    "branch.name": f"{BRANCHES}:test_a_branch_may_have_a_name",
    "fork.paths": f"{STEPS}:test_steps_beside_each_other_ask_at_once",
    "fork.join": JOINED,
    "fork.name": JOINED,
    "repeat_until.until": LOOP,
    "repeat_until.path": LOOP,
    "repeat_until.max_iterations": LOOP,
    "repeat_until.name": LOOP,
    "await_approval.approver": f"{APPROVALS}:approving",
    "await_approval.context": ASKED,
    "await_approval.options": ASKED,
    "await_approval.timeout": PASSED_ON,
    "await_approval.on_timeout": PASSED_ON,
    "await_approval.on_rejection": (f"{APPROVALS}:test_who_rejects_leads_to_the_path_for_that"),
    "await_approval.name": f"{APPROVALS}:test_paths_of_a_fork_ask_at_once",
    "on_failure.path": ORDER,
    "escalate_to.approver": PASSED_ON,
    "escalate_to.context": PASSED_ON,
    "escalate_to.options": f"{APPROVALS}:test_whoever_it_was_passed_on_to_decides",
    "escalate_to.timeout": PASSED_ON,
    "escalate_to.on_timeout": PASSED_ON,
    "Retry.n": BACKOFF,
    "Retry.delay": BACKOFF,
    "Retry.factor": BACKOFF,
    "Retry.max_delay": BACKOFF,
    "Retry.jitter": BACKOFF,
    "Cache.seconds": OWN_CACHE,
    "Cache.shared": OWN_CACHE,
    "Option.id": ASKED,
    "Option.label": ASKED,
    "Option.description": ASKED,
    "Option.rejects": OWN_OPTION,
    "Update.changes": SURE,
    "Update.confidence": SURE,
    "Update.fields": SURE,
}

# What a step of an agent can say.
AGENT_STEPS = {
    "output_type": TYPED,
    "engine": f"{AGENTS}:test_an_engine_is_a_function_a_method_or_an_object",
    "engines": f"{AGENTS}:test_a_selection_picks_who_answers",
    "model": f"{AGENTS}:test_the_app_answers_for_a_step_without_an_engine",
    "tools": CAPPED,
    "max_tool_rounds": CAPPED,
    "thread": f"{AGENTS}:test_steps_of_one_thread_remember_what_was_said",
    "on_text": f"{AGENTS}:test_an_answer_is_heard_before_it_changes_anything",
    "instructions": HEARD,
    "user_prompt": HEARD,
    "build_messages": f"{AGENTS}:test_a_step_says_itself_what_its_agent_hears",
    "apply": TYPED,
    "with_engines": f"{FORMS}:chains",
    "with_components": f"{FORMS}:around_calls",
    "labels": f"{FORMS}:labels",
    "best_of": f"{FORMS}:best_of",
    "max_concurrency": f"{FORMS}:limits",
}

# Words that are given by their place, or that a class of the module has.
BY_PLACE = {
    *("name", "state", "step", "steps", "on", "cases", "paths", "until", "path", "approver"),
    *("n", "id", "label", "description", "changes", "fields"),
}
IN_CLASSES = {"output_type", "instructions", "user_prompt", "apply"}


# How a word is said: as an argument, an attribute, a method, or a call.
WAYS = (("", "="), ("", " ="), ("def ", "("), (".", "("))


def arguments(call: Any, called: str) -> set[str]:
    """Every argument of a call, apart from the settings of a step."""
    found = inspect.signature(call).parameters
    return {f"{called}.{each}" for each in found if each not in ("self", "settings")}


def test_every_setting_of_a_step_has_an_effect() -> None:
    assert set(SETTINGS) == set(StepSettings.__annotations__)


def test_every_argument_of_a_call_has_an_effect() -> None:
    calls = "start_with then finally_ branch fork repeat_until await_approval on_failure".split()
    said = {word for call in calls for word in arguments(getattr(Flow, call), call)}
    said |= {f"Flow.{each}" for each in FlowSettings.__annotations__}
    said |= arguments(Flow.__init__, "Flow") | arguments(Path.__init__, "Path")
    said |= arguments(escalate_to, "escalate_to") | arguments(Update.__init__, "Update")
    said |= {f"{it.__name__}.{each.name}" for it in (Retry, Cache, Option) for each in fields(it)}
    assert set(CALLS) == said


def test_every_word_of_an_agent_step_has_an_effect() -> None:
    words = {name for name in (*vars(AgentStep), *AgentStep.__annotations__) if name[0] != "_"}
    assert set(AGENT_STEPS) == words


def test_a_word_that_somebody_adds_is_missed_here() -> None:
    def planted(self: Any, step: object, colour: str = "") -> None: ...

    assert arguments(planted, "then") == {"then.step", "then.colour"}


@pytest.mark.parametrize("word", [*SETTINGS, *CALLS, *AGENT_STEPS])
def test_the_test_of_a_word_says_it(word: str) -> None:
    module, _, name = {**SETTINGS, **CALLS, **AGENT_STEPS}[word].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    call, _, argument = word.rpartition(".")
    source = inspect.getsource(found)
    whole = inspect.getsource(inspect.getmodule(found) or found) if word in IN_CLASSES else ""
    said = any(f"{before}{argument}{after}" in source for before, after in WAYS)
    placed = argument in BY_PLACE and f"{call}(" in source
    assert said or placed or argument in whole, f"{name} does not say {word}"
