"""A clerk whose turn calls its model twice, and whose engine adds a text of its own."""

from turnloom import Answer, Task, ToolCall, Usage


def price(town: str) -> str:
    """What a parcel to a town costs."""
    return f"4 crowns to {town}"


def answer(task: Task) -> Answer:
    if not task.exchanges:
        return Answer(calls=(ToolCall("price", {"town": "Oslo"}),), usage=Usage(40, 8))
    said = "Four crowns, by the winter tariff."
    return Answer(said, Usage(600, 9), added=("Answer in one sentence.",))


def carry(task: Task) -> Answer:
    return Answer("I carry it.", Usage(30, 4))
