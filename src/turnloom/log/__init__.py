"""The event log: the append-only, totally ordered record of each run."""
