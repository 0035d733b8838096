"""The checks behind `make check` and `make health`; tests/gates turns each of them red."""
