"""Messages, pieces of context before they are recorded, and collections of knowledge."""

from weft.assembly.spec.messages import Message, Piece, Transcript
from weft.assembly.spec.retrieval import (
    Added,
    Chunking,
    Document,
    Matching,
    RagCollection,
    RetrievalResult,
)

__all__ = [
    "Added",
    "Chunking",
    "Document",
    "Matching",
    "Message",
    "Piece",
    "RagCollection",
    "RetrievalResult",
    "Transcript",
]
