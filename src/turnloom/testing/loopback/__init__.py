"""A scripted model behind a real HTTP server on loopback."""

from turnloom.testing.loopback.script import (
    BrokenReply,
    EmptyReply,
    HttpRefusal,
    InvalidReply,
    LingeringReply,
    ModelRequest,
    SlowReply,
    StalledReply,
    UnfinishedReply,
)
from turnloom.testing.loopback.server import LoopbackModel

__all__ = [
    "BrokenReply",
    "EmptyReply",
    "HttpRefusal",
    "InvalidReply",
    "LingeringReply",
    "LoopbackModel",
    "ModelRequest",
    "SlowReply",
    "StalledReply",
    "UnfinishedReply",
]
