"""Functions of a workflow that run before and after its chat and its agents' turns."""
