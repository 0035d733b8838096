"""Messages, pieces of context before they are recorded, who gives them, and collections."""

from turnloom.assembly.spec.providers import (
    AgentRef,
    Chosen,
    ContextProvider,
    ContextRequest,
    ContextSlice,
    Message,
    Piece,
    RunRef,
    Transcript,
    TurnContext,
)
from turnloom.assembly.spec.retrieval import (
    Added,
    Chunking,
    Document,
    Matching,
    RagCollection,
    RetrievalResult,
)

__all__ = [
    "Added",
    "AgentRef",
    "Chosen",
    "Chunking",
    "ContextProvider",
    "ContextRequest",
    "ContextSlice",
    "Document",
    "Matching",
    "Message",
    "Piece",
    "RagCollection",
    "RetrievalResult",
    "RunRef",
    "Transcript",
    "TurnContext",
]
