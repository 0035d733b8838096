"""Asking providers for context, and the providers that there are."""
