"""A scripted model behind a real HTTP server on loopback."""

from turnloom.testing.loopback.script import (
    Broken,
    Endless,
    Garbled,
    Hollow,
    HttpRefusal,
    Lingering,
    ModelRequest,
    Paced,
    Stalled,
)
from turnloom.testing.loopback.server import LoopbackModel

__all__ = [
    "Broken",
    "Endless",
    "Garbled",
    "Hollow",
    "Lingering",
    "LoopbackModel",
    "ModelRequest",
    "Paced",
    "HttpRefusal",
    "Stalled",
]
