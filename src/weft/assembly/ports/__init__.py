"""What assembly needs from the world."""

from weft.assembly.ports.retrieval import (
    Embedder,
    Splitter,
    VectorSearch,
    VectorStore,
)
from weft.assembly.spec.means import TokenCounter

__all__ = ["Embedder", "Splitter", "TokenCounter", "VectorSearch", "VectorStore"]
