"""Reading from a board, whatever keeps it, and making it again out of the logs."""

from weft.board.service.handle import Witness, bind
from weft.board.service.reading import Reading
from weft.board.service.rebuilding import index, rebuild

__all__ = ["Reading", "Witness", "bind", "index", "rebuild"]
