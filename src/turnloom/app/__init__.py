"""The public face: an app over one store, its runs and its boards as handles.

It is light to import: what an app consists of is imported when the app is first used.
"""

from turnloom.app.board import Board
from turnloom.app.explanations import Explanations
from turnloom.app.history import Definition, History
from turnloom.app.loom import Loom
from turnloom.app.run import Run

__all__ = ["Board", "Definition", "Explanations", "History", "Loom", "Run"]
