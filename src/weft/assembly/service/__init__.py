"""Assembling context: asking providers, and filling and searching collections."""

from weft.assembly.service.assembling import Assembled, Assembler, assemble
from weft.assembly.service.retrieval import EmbeddingSearch
from weft.assembly.service.situations import Situation

__all__ = ["Assembled", "Assembler", "EmbeddingSearch", "Situation", "assemble"]
