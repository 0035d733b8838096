"""The append-only, totally ordered record of one run: the truth."""
