"""Nothing that can be said of a board is inert: every argument has a test of what it does in a run.

The tests are those of `tests/reaction`; here it is seen that there is one for each argument, and
that it says the argument.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tests.reaction.sayings import options
from turnloom.app import Loom
from turnloom.app.board import Board, Readable

MATCHING, GATES, JOINS, BATCHES, PRODUCTS, ENGINES, CONTEXT, COMPONENTS = (
    f"tests.reaction.test_{each}"
    for each in ("matching", "gates", "joins", "batches", "products", "engines")
    + ("context", "components")
)
PUBLISHING, WAITING, VARIABLES, SOURCES, LABELS = (
    f"tests.reaction.test_{each}"
    for each in ("publishing", "waiting", "variables", "sources", "labels")
)
NEAREST = f"{CONTEXT}:test_a_provider_that_fails_is_replaced_by_its_fallback"
FILTER = f"{CONTEXT}:test_a_filter_chooses_from_the_whole_board"
BEST = f"{ENGINES}:test_the_best_of_several_tries_counts"
REPEATED = f"{PUBLISHING}:test_an_id_that_is_there_is_a_repeat_or_refused"
DIRECT = f"{WAITING}:test_a_direct_call_need_not_publish"
CANCELLED = f"{WAITING}:test_a_run_is_cancelled"
RETRIED = f"{WAITING}:test_what_failed_is_tried_again_on_purpose"
WHOSE = f"{VARIABLES}:test_runs_of_a_board_are_whose_they_are"

# What can be said of an agent, and the test that shows what comes of it.
AGENTS = {
    "description.text": f"{ENGINES}:test_a_description_is_what_the_agent_is_told",
    "consumes.types": f"{GATES}:test_a_type_that_is_named_twice_is_needed_twice",
    "consumes.where": f"{MATCHING}:test_where_is_asked_of_the_value_and_may_be_async",
    "consumes.from_agents": f"{MATCHING}:test_only_those_are_heard_who_are_named",
    "consumes.tags": f"{MATCHING}:test_tags_choose",
    "consumes.join": f"{JOINS}:test_a_join_pairs_by_key_over_all_correlations",
    "consumes.batch": f"{BATCHES}:test_a_batch_is_taken_at_its_size",
    "consumes.context_provider": f"{CONTEXT}:test_each_subscription_may_have_its_own_provider",
    "consumes.priority": f"{MATCHING}:test_the_urgent_subscription_is_served_first",
    "publishes.types": f"{PRODUCTS}:test_several_of_one_type_are_published",
    "publishes.visibility": f"{PRODUCTS}:test_what_holds_for_a_type_holds_for_each_of_it",
    "publishes.tags": f"{PRODUCTS}:test_what_holds_for_a_type_holds_for_each_of_it",
    "publishes.fan_out": f"{PRODUCTS}:test_fan_out_says_how_many",
    "publishes.validate": f"{PRODUCTS}:test_what_does_not_validate_is_refused",
    "publishes.inherit": f"{LABELS}:test_what_is_made_inherits_who_may_see_what_it_was_made_of",
    "with_engines.engines": f"{ENGINES}:test_engines_answer_one_after_the_other",
    "with_tools.max_rounds": "tests.parity.forms.boards:tool_rounds",
    "with_tools.functions": f"{ENGINES}:test_an_agent_calls_its_tools",
    "with_context.provider": f"{CONTEXT}:test_a_provider_knows_whom_it_gives_context",
    "with_context.fallback": NEAREST,
    "with_context.timeout": NEAREST,
    "with_context.config": NEAREST,
    "with_context_filter.filters": FILTER,
    "with_context_filter.limit": FILTER,
    "with_context_filter.include_state_keys": (
        f"{COMPONENTS}:test_a_filter_includes_what_the_state_holds"
    ),
    "with_sources.sources": f"{SOURCES}:test_several_inputs_are_known_by_their_types",
    "with_sources.budget": f"{SOURCES}:test_what_has_no_room_is_withheld_with_the_reason",
    "with_sources.format": f"{SOURCES}:test_sources_stand_in_order_and_tokens_add_up",
    "with_components.components": f"{COMPONENTS}:test_the_first_component_is_outermost",
    "labels.labels": f"{CONTEXT}:test_labels_open_what_is_for_them",
    "tenant.name": f"{CONTEXT}:test_an_agent_of_another_tenant_is_refused",
    "best_of.n": BEST,
    "best_of.score": BEST,
    "max_concurrency.k": f"{ENGINES}:test_no_more_turns_are_taken_at_once_than_there_is_room_for",
    "prevent_self_trigger.enabled": (
        f"{MATCHING}:test_an_agent_that_may_is_woken_by_what_it_makes"
    ),
    "Join.by": f"{JOINS}:test_a_join_pairs_by_key_over_all_correlations",
    "Join.within": f"{JOINS}:test_a_window_in_time_lets_old_ones_go_and_says_so",
    "Batch.size": f"{BATCHES}:test_a_batch_is_taken_at_its_size",
    "Batch.timeout": f"{BATCHES}:test_a_batch_is_taken_when_its_time_is_over",
}

# What can be said to a board, and the test that shows what comes of it.
BOARDS = {
    "board.name": f"{PUBLISHING}:test_boards_do_not_wake_each_others_agents",
    "board.user_id": WHOSE,
    "board.app_id": WHOSE,
    "board.variables": (
        f"{VARIABLES}:test_what_agents_say_and_make_changes_variables_that_others_are_shown"
    ),
    "board.hooks": f"{VARIABLES}:test_hooks_run_around_the_run_and_around_turns",
    "board.guards": (
        "tests.guards.test_budget:test_of_two_parallel_turns_exactly_one_gets_the_last_model_call"
    ),
    "board.max_turns": f"{WAITING}:test_a_loop_ends_at_the_limit_with_what_was_not_delivered",
    "agent.name": f"{WAITING}:test_all_that_failed_in_a_run_is_tried_again",
    "register.types": f"{MATCHING}:test_two_types_of_one_simple_name_are_told_apart",
    "value.type": f"{PUBLISHING}:test_a_value_is_made_out_of_json",
    "value.payload": f"{PUBLISHING}:test_a_value_is_made_out_of_json",
    "publish.value": REPEATED,
    "publish.tags": REPEATED,
    "publish.visibility": REPEATED,
    "publish.correlation_id": REPEATED,
    "publish.partition": f"{PUBLISHING}:test_an_artifact_may_lie_in_a_partition",
    "publish.id": REPEATED,
    "publish_many.values": f"{PUBLISHING}:test_many_are_published_at_once_or_none",
    "publish_many.tags": f"{PUBLISHING}:test_many_are_published_at_once_or_none",
    "publish_many.visibility": f"{PUBLISHING}:test_many_of_one_correlation_are_in_one_run",
    "publish_many.correlation_id": f"{PUBLISHING}:test_many_of_one_correlation_are_in_one_run",
    "invoke.agent": DIRECT,
    "invoke.value": DIRECT,
    "invoke.publish": DIRECT,
    "run_until_idle.timeout": f"{WAITING}:test_waiting_ends_in_time_and_what_goes_on_goes_on",
    "run_until_idle.raise_errors": f"{WAITING}:test_idle_gives_what_failed_if_it_is_not_to_raise",
    "run_until.condition": f"{WAITING}:test_a_condition_is_waited_for_while_others_work",
    "run_until.timeout": f"{WAITING}:test_a_condition_is_waited_for_while_others_work",
    "retry.failed": RETRIED,
    "retry.agent": RETRIED,
    "cancel.run": CANCELLED,
    "cancel.reason": CANCELLED,
    "close.timeout": f"{WAITING}:test_closing_waits_as_long_as_it_may",
    "read_as.reader": f"{PUBLISHING}:test_reading_sees_what_the_reader_may",
    "query_artifacts.filter": f"{PUBLISHING}:test_a_board_is_asked_in_pages",
    "query_artifacts.embed_meta": f"{PUBLISHING}:test_a_board_is_asked_in_pages",
    "query_artifacts.cursor": f"{PUBLISHING}:test_a_board_is_asked_in_pages",
    "query_artifacts.count": f"{PUBLISHING}:test_a_board_is_asked_in_pages",
    "iter_artifacts.filter": f"{PUBLISHING}:test_a_board_is_read_as_a_whole",
    "iter_artifacts.embed_meta": f"{PUBLISHING}:test_a_board_is_read_as_a_whole",
    "get.id": f"{PUBLISHING}:test_what_is_published_is_there_before_anything_comes_of_it",
    "summary.filter": f"{PUBLISHING}:test_a_board_is_asked_in_pages",
}

# Arguments that are given by their place; the test says the call.
BY_PLACE = {
    *("types", "text", "engines", "functions", "provider", "components", "labels", "n", "k"),
    *("score", "name", "enabled", "by", "size", "value", "values", "condition", "failed", "run"),
    *("reader", "filter", "id", "agent", "timeout", "sources", "type", "payload"),
}


def arguments(owner: Any, *names: str) -> set[str]:
    """Every argument of some calls."""
    return {
        f"{name}.{each}"
        for name in names
        for each in inspect.signature(getattr(owner, name)).parameters
        if each != "self"
    }


def test_every_argument_of_a_builder_has_an_effect() -> None:
    assert set(AGENTS) == options()


def test_every_argument_of_a_board_has_an_effect() -> None:
    every = (*vars(Readable), *vars(Board))
    calls = [name for name in every if not name.startswith("_")]
    assert set(BOARDS) == arguments(Board, *calls) | arguments(Loom, "board")


def test_an_argument_that_somebody_adds_is_missed_here() -> None:
    class Planted:
        def publish(self, value: object, colour: str = "") -> None: ...

    assert arguments(Planted, "publish") == {"publish.value", "publish.colour"}


@pytest.mark.parametrize("option", [*AGENTS, *BOARDS])
def test_the_test_of_an_argument_says_it(option: str) -> None:
    module, _, name = {**AGENTS, **BOARDS}[option].partition(":")
    test: Callable[..., Any] = getattr(import_module(module), name)
    call, _, argument = option.partition(".")
    source = inspect.getsource(test)
    said = f"{argument}=" in source or (argument in BY_PLACE and f"{call}(" in source)
    assert said or f'"{argument}"' in source, f"{name} does not say {option}"
