"""An engine that answers from a script: the same answers every time, and no others."""

import re
from collections.abc import Collection, Mapping, Sequence

from turnloom.agents.spec import Answer, Task
from turnloom.errors import EngineError

_WORD = re.compile(r"\s*\S+\s*|\s+")


def pieces(text: str) -> list[str]:
    """A text word by word, as it is said."""
    return _WORD.findall(text)


class ScriptedEngine:
    """Gives each agent its next line; a call the script does not have fails, unless the agent is
    one that `repeats` its last line.

    Which line comes next follows from the run, not from this object, so a run that is resumed
    goes on in its script where it stood.
    """

    def __init__(
        self,
        lines: Mapping[str, Sequence[str | Answer | Exception]],
        repeats: Collection[str] = (),
    ) -> None:
        self.lines = {agent: tuple(said) for agent, said in lines.items()}
        self.repeats = frozenset(repeats)
        self.calls: list[Task] = []

    async def __call__(self, task: Task) -> Answer:
        """The next line of the task's agent.

        Raises:
            EngineError: the script has no line for this call.
        """
        self.calls.append(task)
        lines = self.lines.get(task.agent, ())
        number = min(task.number, len(lines)) if task.agent in self.repeats else task.number
        if not 0 < number <= len(lines):
            raise EngineError(
                f"The script has {len(lines)} lines for {task.agent!r}, and this is call "
                f"{task.number}. Add a line, or end the conversation before."
            )
        line = lines[number - 1]
        if isinstance(line, Exception):
            raise line
        answer = Answer(line) if isinstance(line, str) else line
        if task.output is None:  # nobody reads half an output
            for word in pieces(answer.text):
                task.say(word)
        return answer

    def unsaid(self, spoken: Mapping[str, int]) -> dict[str, int]:
        """How many lines of each agent nobody asked for, given how often each was asked."""
        left = {name: len(said) - spoken.get(name, 0) for name, said in self.lines.items()}
        return {name: count for name, count in left.items() if count > 0}

    def assert_complete(self) -> None:
        """Fail unless every line was asked for.

        Raises:
            EngineError: some were not.
        """
        spoken: dict[str, int] = {}
        for task in self.calls:
            spoken[task.agent] = max(spoken.get(task.agent, 0), task.number)
        left = self.unsaid(spoken)
        if left:
            counts = ", ".join(f"{name}: {count}" for name, count in left.items())
            raise EngineError(f"The script has lines that were never asked for ({counts}).")
