"""Measures what Turnloom costs, as ratios to plain code measured in the same run."""
