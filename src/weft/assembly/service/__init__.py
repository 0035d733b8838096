"""The order of calls that fill and search collections."""

from weft.assembly.service.retrieval import EmbeddingSearch

__all__ = ["EmbeddingSearch"]
