"""What the two agents of the interview say: plain functions of what was said before."""

from turnloom import Task

QUESTIONS = (
    "Hello! What work would you like to automate?",
    "Who does this today, and how?",
    "When does it count as done?",
)
YES = ("accept", "yes", "ok", "fine", "good", "great")


def answers(task: Task) -> list[str]:
    """What the user has said so far."""
    return [message.text for message in task.transcript if message.author == "user"]


def ask(task: Task) -> str:
    """The next question of the interview, or NEXT when all are answered."""
    given = len(answers(task))
    return QUESTIONS[given] if given < len(QUESTIONS) else "NEXT"


def plan(task: Task) -> str:
    """The plan, again with each wish of the user, or DONE when it is accepted."""
    work, today, done, *wishes = answers(task)
    if wishes and any(word in wishes[-1].lower() for word in YES):
        return "DONE"
    steps = [f"1. Automate: {work}", f"2. Replace today's way: {today}", f"3. Finish: {done}"]
    steps += [f"   Considered: {wish}" for wish in wishes]
    return "Here is the plan.\n" + "\n".join(steps) + "\nDo you accept it?"
