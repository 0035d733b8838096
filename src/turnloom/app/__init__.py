"""The public API: an app over one store, with handles for its runs and boards.

It is light to import: the parts of an app are imported when the app is first used.
"""

from turnloom.app.board import Board
from turnloom.app.explanations import Explanations
from turnloom.app.history import Definition, History
from turnloom.app.loom import Loom
from turnloom.app.run import Run
from turnloom.app.upkeep import Upkeep

__all__ = ["Board", "Definition", "Explanations", "History", "Loom", "Run", "Upkeep"]
