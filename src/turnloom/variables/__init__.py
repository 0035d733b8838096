"""Declared pieces of context: where their values come from, what changes them, who sees them."""
