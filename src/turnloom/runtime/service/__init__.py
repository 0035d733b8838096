"""The order of calls that moves a run."""
