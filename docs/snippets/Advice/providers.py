"""The collection of the adviser."""

from turnloom import RagCollection


class Handbook(RagCollection):
    name = "handbook"
