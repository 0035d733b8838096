"""Tests that are about another store, each with the reason."""

_FILES = "it reads the files of a SQLite store"
_FLOOD = "it sends the largest number of messages that may wait, one by one"
_ORDER = "it needs runs that begin at once to be in the order in which a store in memory has them"

EXEMPT: dict[str, str] = {
    "tests/adapters": "each adapter has its own tests",
    "tests/backtest/test_boards.py::test_what_is_certain_of_a_board_is_true": _ORDER,
    "tests/forks/test_killed_forks.py": "it counts how often a SQLite file is written",
    "tests/guards/test_loops.py::test_work_on_other_things_is_no_loop": _ORDER,
    "tests/parity/test_components.py::test_a_way_beyond_would_be_found": "it looks for the memory",
    "tests/reaction/test_batches.py::"
    "test_what_was_published_right_before_the_board_closes_is_taken": _ORDER,
    "tests/reaction/test_batches.py::"
    "test_who_comes_first_is_not_overtaken_while_it_begins_to_be_collected": _ORDER,
    "tests/runtime/test_limits.py::test_mail_in_a_file": _FLOOD,
    "tests/runtime/test_limits.py::test_mail_in_memory": _FLOOD,
    "tests/runtime/test_secret_canary.py::test_nothing_is_left_in_the_files_of_a_store": _FILES,
}
