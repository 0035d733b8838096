"""Drive runs: the loop, its tasks, what comes in from outside."""
