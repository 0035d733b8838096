"""Ports of assembly."""

from turnloom.assembly.ports.retrieval import (
    PlainSearch,
    PrunableStore,
    Splitter,
    Vectors,
    VectorSearch,
    VectorStore,
)
from turnloom.assembly.spec.means import Embedder, TokenCounter

__all__ = [
    "Embedder",
    "PlainSearch",
    "PrunableStore",
    "Splitter",
    "TokenCounter",
    "VectorSearch",
    "VectorStore",
    "Vectors",
]
