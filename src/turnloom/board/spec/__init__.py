"""What is put on a board, who may see it, and what is asked of it."""

from turnloom.board.spec.artifacts import Artifact, BoardSummary, Consumption, Envelope, Page
from turnloom.board.spec.filters import FilterConfig, Operator, TagFilter, Where
from turnloom.board.spec.handle import BoardHandle, Items
from turnloom.board.spec.types import TypeRegistry, artifact_type, type_name
from turnloom.board.spec.visibility import (
    After,
    Audience,
    Labelled,
    Private,
    Public,
    Reader,
    Role,
    Shared,
    Tenant,
    Visibility,
    is_shared,
)

__all__ = [
    "After",
    "Artifact",
    "Audience",
    "BoardHandle",
    "Consumption",
    "Envelope",
    "FilterConfig",
    "Items",
    "Labelled",
    "Operator",
    "Page",
    "Private",
    "Public",
    "Reader",
    "BoardSummary",
    "Role",
    "Shared",
    "TagFilter",
    "Tenant",
    "TypeRegistry",
    "Visibility",
    "Where",
    "artifact_type",
    "is_shared",
    "type_name",
]
