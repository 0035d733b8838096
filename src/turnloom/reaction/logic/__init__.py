"""Whose turn it is when artifacts decide."""
