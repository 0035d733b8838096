"""Reading from a board, whatever keeps it, and making it again out of the logs."""

from turnloom.board.service.handle import Witness, bind
from turnloom.board.service.reading import IndexedArtifacts, IndexReader
from turnloom.board.service.rebuilding import index, rebuild

__all__ = ["IndexReader", "IndexedArtifacts", "Witness", "bind", "index", "rebuild"]
