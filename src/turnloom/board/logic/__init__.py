"""Visibility, matching, and the storage and lookup of artifacts."""
