"""Two clerks who answer letters."""

from turnloom import Task

SAY = {"Ann": "The second charge is paid back.", "Bob": "You get it back within a week."}


def answer(task: Task) -> str:
    return SAY[task.agent]
