"""Reading from a board of any store, and rebuilding it from the logs."""

from turnloom.board.service.handle import Witness, bind
from turnloom.board.service.reading import IndexedArtifacts, IndexReader
from turnloom.board.service.rebuilding import index, rebuild

__all__ = ["IndexReader", "IndexedArtifacts", "Witness", "bind", "index", "rebuild"]
