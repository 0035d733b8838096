"""From declarations and values to a frame, and from a recorded frame back to the exact prompt."""

from weft.assembly.logic.frames import (
    BESIDE,
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
