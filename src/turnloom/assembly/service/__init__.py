"""Assembly of context: calling providers, filling and searching collections."""

from turnloom.assembly.service.assembling import Assembler, AssemblyResult, assemble
from turnloom.assembly.service.retrieval import EmbeddingSearch
from turnloom.assembly.service.situations import Situation

__all__ = ["AssemblyResult", "Assembler", "EmbeddingSearch", "Situation", "assemble"]
