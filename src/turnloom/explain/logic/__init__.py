"""Explanations, computed from the events of one run and nothing else."""
