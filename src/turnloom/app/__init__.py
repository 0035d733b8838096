"""The public face: an app over one store, its runs and its boards as handles.

It is light to import: what an app consists of is imported when the app is first used.
"""

from turnloom.app.board import Board
from turnloom.app.loom import Loom
from turnloom.app.run import Run

__all__ = ["Board", "Run", "Loom"]
