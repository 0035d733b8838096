"""Tests that are about another store, each with the reason."""

EXEMPT: dict[str, str] = {
    "tests/adapters": "each adapter has its own tests",
}
