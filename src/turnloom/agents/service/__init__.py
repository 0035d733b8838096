"""Retries of model calls."""
