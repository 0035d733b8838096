"""Asking providers for context, and filling and searching collections."""

from weft.assembly.service.retrieval import EmbeddingSearch

__all__ = ["EmbeddingSearch"]
