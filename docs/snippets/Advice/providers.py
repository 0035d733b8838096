"""What the adviser looks things up in."""

from weft import RagCollection


class Handbook(RagCollection):
    name = "handbook"
