"""Tests that are about another store, each with the reason."""

_FILES = "it reads the files of a SQLite store"
_FLOOD = "it sends the largest number of messages that may wait, one by one"
_ORDER = "it needs runs that begin at once to be in the order in which a store in memory has them"

_FAST = "it needs a store that is faster than the runs of a board end, or than 50 ms"

EXEMPT: dict[str, str] = {
    "tests/adapters": "each adapter has its own tests",
    "tests/backtest/test_boards.py::test_what_is_certain_of_a_board_is_true": _ORDER,
    "tests/forks/test_killed_forks.py": "it counts how often a SQLite file is written",
    "tests/explain/test_board_routes.py::test_what_opens_is_offered_again_and_says_so": _FAST,
    "tests/explain/test_board_routes.py::"
    "test_the_run_that_collects_says_why_something_cannot_be_joined": _ORDER,
    "tests/explain/test_state.py::test_a_board_as_its_agents_see_it": _FAST,
    "tests/guards/test_loops.py::test_work_on_other_things_is_no_loop": _FAST,
    "tests/parity/test_components.py::test_a_way_beyond_would_be_found": "it looks for the memory",
    "tests/reaction/test_batches.py::"
    "test_what_was_published_right_before_the_board_closes_is_taken": _ORDER,
    "tests/reaction/test_batches.py::"
    "test_who_comes_first_is_not_overtaken_while_it_begins_to_be_collected": _ORDER,
    "tests/reaction/test_sources.py::"
    "test_each_turn_tells_what_was_redacted_of_its_own_inputs": _FAST,
    "tests/reaction/test_trouble.py::test_trouble_with_the_store_reaches_whoever_waits": _FILES,
    "tests/runtime/test_limits.py::test_mail_in_a_file": _FLOOD,
    "tests/runtime/test_limits.py::test_mail_in_memory": _FLOOD,
    "tests/runtime/test_secret_canary.py::test_nothing_is_left_in_the_files_of_a_store": _FILES,
    "tests/tenants/test_canaries.py::test_memory": "it has an example of its own for each store",
}
