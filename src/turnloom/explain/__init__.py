"""Explanations computed from the log: frames, values, routes and timelines."""
