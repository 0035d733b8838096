"""Tests that are about another store, each with the reason."""

_FILES = "it reads the files of a SQLite store"
_FLOOD = "it sends the largest number of messages that may wait, one by one"

EXEMPT: dict[str, str] = {
    "tests/adapters": "each adapter has its own tests",
    "tests/runtime/test_limits.py::test_mail_in_memory": _FLOOD,
    "tests/runtime/test_limits.py::test_mail_in_a_file": _FLOOD,
    "tests/runtime/test_secret_canary.py::test_nothing_is_left_in_the_files_of_a_store": _FILES,
}
