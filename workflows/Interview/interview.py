"""The two agents of the interview, as plain functions of the transcript."""

from turnloom import Task

QUESTIONS = (
    "Hello! What work would you like to automate?",
    "Who does this today, and how?",
    "When does it count as done?",
)
YES = ("accept", "yes", "ok", "fine", "good", "great")


def answers(task: Task) -> list[str]:
    """Return the user's messages so far."""
    return [message.text for message in task.transcript if message.author == "user"]


def ask(task: Task) -> str:
    """Ask the next question of the interview, or say NEXT when all are answered."""
    given = len(answers(task))
    return QUESTIONS[given] if given < len(QUESTIONS) else "NEXT"


def plan(task: Task) -> str:
    """Present the plan with the user's wishes, or say DONE when it is accepted."""
    work, today, done, *wishes = answers(task)
    if wishes and any(word in wishes[-1].lower() for word in YES):
        return "DONE"
    steps = [f"1. Automate: {work}", f"2. Replace today's way: {today}", f"3. Finish: {done}"]
    steps += [f"   Considered: {wish}" for wish in wishes]
    return "Here is the plan.\n" + "\n".join(steps) + "\nDo you accept it?"
