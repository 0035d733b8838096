"""Messages, pieces of context, context providers and collections."""

from turnloom.assembly.spec.providers import (
    AgentRef,
    ChosenProvider,
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
    AddedDocuments,
    Chunking,
    Document,
    Matching,
    RagCollection,
    RetrievalResult,
)

__all__ = [
    "AddedDocuments",
    "AgentRef",
    "ChosenProvider",
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
