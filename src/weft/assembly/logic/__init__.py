"""How frames are made and read, how providers are judged, and how collections are asked."""

from weft.assembly.logic.frames import (
    BESIDE,
    CONTEXT,
    COUNTER,
    EMPTY,
    SCHEMAS,
    View,
    apart,
    estimate,
    frame,
    piece,
    prompt_text,
    rendered,
    spoken,
    system_text,
    view,
)

__all__ = [
    "BESIDE",
    "CONTEXT",
    "COUNTER",
    "EMPTY",
    "SCHEMAS",
    "View",
    "apart",
    "estimate",
    "frame",
    "piece",
    "prompt_text",
    "rendered",
    "spoken",
    "system_text",
    "view",
]
