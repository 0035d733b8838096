"""Reading from a board, whatever keeps it, and making it again out of the logs."""

from weft.board.service.handle import Witness, bind
from weft.board.service.indexing import index, rebuild
from weft.board.service.reading import Reading

__all__ = ["Reading", "Witness", "bind", "index", "rebuild"]
