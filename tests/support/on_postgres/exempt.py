"""Tests that are about another store, each with the reason."""

_FILES = "it reads the files of a SQLite store"
_ORDER = "it shows what a store in memory orders: turns of two agents, or runs, that begin at once"

EXEMPT: dict[str, str] = {
    "tests/adapters": "each adapter has its own tests",
    "tests/backtest/test_boards.py::test_what_is_certain_of_a_board_is_true": _ORDER,
    "tests/board/test_handle.py::test_a_handle_that_nobody_holds_is_forgotten": (
        "the stand-ins are held until the end of a test"
    ),
    "tests/board/test_indexing.py::test_sqlite_searches_by_the_key_of_the_terms": _FILES,
    "tests/cli/test_prune.py::test_a_file_shrinks": _FILES,
    "tests/cli/test_recovery.py::"
    "test_a_full_disk_is_a_sentence_and_the_run_goes_on_afterwards": "it limits the size of a file",
    "tests/cli/test_store_commands.py::test_an_older_file_is_refused_until_it_is_migrated": _FILES,
    "tests/cli/test_use.py::test_a_call_imports_only_what_it_needs": "the stand-in imports more",
    "tests/cli/test_use.py::test_tracebacks_come_with_debug_only": _FILES,
    "tests/parity/test_components.py::test_a_way_beyond_would_be_found": "it looks for the memory",
    "tests/reaction/test_batches.py::"
    "test_who_comes_first_is_not_overtaken_while_it_begins_to_be_collected": _ORDER,
    "tests/tenants/test_canaries.py::test_memory": "it has an example of its own for each store",
}
