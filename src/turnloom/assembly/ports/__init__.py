"""What assembly needs from the world."""

from turnloom.assembly.ports.retrieval import (
    PlainSearch,
    Splitter,
    Vectors,
    VectorSearch,
    VectorStore,
)
from turnloom.assembly.spec.means import Embedder, TokenCounter

__all__ = [
    "Embedder",
    "PlainSearch",
    "Splitter",
    "TokenCounter",
    "VectorSearch",
    "VectorStore",
    "Vectors",
]
