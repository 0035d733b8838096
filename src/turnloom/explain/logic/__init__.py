"""Explanations computed only from the events of one run."""
