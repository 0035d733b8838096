"""The agents of the order desk."""

from turnloom import Answer, Task


def sort(task: Task) -> str:
    """What the letter is about."""
    letter = task.transcript[0].text
    topic = "parcel" if "parcel" in letter else "money"
    return f"Topic: {topic}. URGENT." if "today" in letter else f"Topic: {topic}."


async def settle(task: Task) -> str | Answer:
    """That it is done."""
    return f"{task.agent} takes care of it."
