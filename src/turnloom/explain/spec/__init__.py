"""Explanations as data; `str` renders them as plain text, msgspec as JSON."""
