"""Messages, pieces of context before they are recorded, and who gives them."""

from weft.assembly.spec.messages import Message, Piece, Transcript
from weft.assembly.spec.providers import (
    AgentRef,
    Chosen,
    ContextProvider,
    ContextRequest,
    ContextSlice,
    RunRef,
    TurnContext,
)

__all__ = [
    "AgentRef",
    "Chosen",
    "ContextProvider",
    "ContextRequest",
    "ContextSlice",
    "Message",
    "Piece",
    "RunRef",
    "Transcript",
    "TurnContext",
]
