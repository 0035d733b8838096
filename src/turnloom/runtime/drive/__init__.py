"""Drive runs: the loop, its tasks, intake of messages and time."""
