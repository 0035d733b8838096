"""What assembly needs from the world."""

from weft.assembly.ports.retrieval import (
    PlainSearch,
    Splitter,
    VectorSearch,
    VectorStore,
)
from weft.assembly.spec.means import Embedder, TokenCounter

__all__ = ["Embedder", "PlainSearch", "Splitter", "TokenCounter", "VectorSearch", "VectorStore"]
