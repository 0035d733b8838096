"""What assembly needs from the world."""

from weft.assembly.ports.retrieval import (
    Splitter,
    VectorSearch,
    VectorStore,
)
from weft.assembly.spec.means import Embedder, TokenCounter

__all__ = ["Embedder", "Splitter", "TokenCounter", "VectorSearch", "VectorStore"]
