"""Flows: a typed state goes through steps."""
