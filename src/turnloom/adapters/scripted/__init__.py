"""Engine that answers from a script."""

import re
from collections.abc import Collection, Mapping, Sequence

from turnloom.agents.spec import Answer, Task
from turnloom.errors import EngineError

_WORD = re.compile(r"\s*\S+\s*|\s+")


def pieces(text: str) -> list[str]:
    """The words of a text, with the spaces between them: one per delta."""
    return _WORD.findall(text)


class ScriptedEngine:
    """Answers each agent with its next line. A call beyond the script fails, unless `repeats` names
    the agent: then its last line is repeated.

    The run determines the next line, so a resumed run continues at the right one.
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
                f"Call {task.number} of {task.agent!r} has no line: the script has {len(lines)}. "
                "Add a line, or end the conversation earlier."
            )
        line = lines[number - 1]
        if isinstance(line, Exception):
            raise line
        answer = Answer(line) if isinstance(line, str) else line
        if task.output is None:  # a partial output is of no use
            for word in pieces(answer.text):
                task.say(word)
        return answer

    def unused_lines(self, spoken: Mapping[str, int]) -> dict[str, int]:
        """The number of unused lines per agent, given the calls of each."""
        left = {name: len(said) - spoken.get(name, 0) for name, said in self.lines.items()}
        return {name: count for name, count in left.items() if count > 0}

    def assert_complete(self) -> None:
        """Fail unless every line was used.

        Raises:
            EngineError: some lines were not used.
        """
        spoken: dict[str, int] = {}
        for task in self.calls:
            spoken[task.agent] = max(spoken.get(task.agent, 0), task.number)
        left = self.unused_lines(spoken)
        if left:
            counts = ", ".join(f"{name}: {count}" for name, count in left.items())
            raise EngineError(f"The script has unused lines ({counts}). Remove them.")
