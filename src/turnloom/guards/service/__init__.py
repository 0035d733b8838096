"""Choices over what is known, and what is learned from them."""
