"""Texts as vectors by a small model that is part of a package. Needs the extra `embeddings`."""

from turnloom.adapters.wordllama.embedder import WordLlamaEmbedder

__all__ = ["WordLlamaEmbedder"]
