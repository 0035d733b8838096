"""Reading from a board: who may see what is decided here, whatever keeps the artifacts."""

from weft.board.service.handle import Witness, bind
from weft.board.service.reading import Reading

__all__ = ["Reading", "Witness", "bind"]
