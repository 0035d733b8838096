"""Decisions about access: tokens of keys, claims of identity providers, audit entries."""
