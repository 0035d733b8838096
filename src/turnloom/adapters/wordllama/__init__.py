"""Embeddings by a small model that ships in a package. Needs the extra `embeddings`."""

from turnloom.adapters.wordllama.embedder import WordLlamaEmbedder

__all__ = ["WordLlamaEmbedder"]
