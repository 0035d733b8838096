"""The checks behind `make check` and `make health`; tests/gates has a planted violation for
each."""
