"""Assembly of context: calling providers, filling and searching collections."""

from turnloom.assembly.service.assembling import Assembled, Assembler, assemble
from turnloom.assembly.service.retrieval import EmbeddingSearch
from turnloom.assembly.service.situations import Situation

__all__ = ["Assembled", "Assembler", "EmbeddingSearch", "Situation", "assemble"]
