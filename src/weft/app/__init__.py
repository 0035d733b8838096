"""The public face: an app over one store, its runs and its boards as handles.

It is light to import: what an app consists of is imported when the app is first used.
"""

from weft.app.board import Board
from weft.app.run import Run
from weft.app.weft import Weft

__all__ = ["Board", "Run", "Weft"]
