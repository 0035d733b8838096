"""What assembly needs from the world."""

from weft.assembly.ports.retrieval import (
    Embedder,
    Splitter,
    TokenCounter,
    VectorSearch,
    VectorStore,
)

__all__ = ["Embedder", "Splitter", "TokenCounter", "VectorSearch", "VectorStore"]
