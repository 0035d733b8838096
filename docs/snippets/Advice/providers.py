"""What the adviser looks things up in."""

from turnloom import RagCollection


class Handbook(RagCollection):
    name = "handbook"
