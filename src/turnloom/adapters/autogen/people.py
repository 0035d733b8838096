"""The streams by which agents of the classic line ask people, and tell what nobody reads."""

from typing import Any

from anyio import from_thread

from turnloom.agents.spec import use_ui_tool
from turnloom.kernel.values import as_data

# What asks, when an agent wants input: the name of its questions.
INPUT = "human_input"


async def ask(prompt: str) -> str:
    """What the person answers that the run belongs to; the run waits for it."""
    answer = await use_ui_tool(INPUT, {"prompt": prompt})
    return answer if isinstance(answer, str) else as_data(answer)


class Silent:
    """A stream that nobody reads: what is to be known of a call is on record."""

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Print nothing."""

    def send(self, message: Any) -> None:
        """Tell nobody."""


class InLoop(Silent):
    """The stream of what runs in the event loop."""

    async def input(self, prompt: str = "", *, password: bool = False) -> str:
        """What the person answers."""
        return await ask(prompt)


class InThread(Silent):
    """The stream of what runs in a thread of the call."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """What the person answers."""
        return from_thread.run(ask, prompt)
