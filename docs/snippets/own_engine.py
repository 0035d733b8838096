"""A custom engine: it calls no model, and reports the size of its input."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from turnloom import Answer, Loom, Task
from turnloom.agents.spec import Usage


class Measuring:
    """Answers with the size of its input."""

    async def __call__(self, task: Task) -> Answer:
        """Call your model here: `task.system` is its system prompt."""
        said = [f"{message.author} said {message.text!r}" for message in task.transcript]
        text = f"My instructions: {task.system!r}; {', '.join(said)}"
        return Answer(text, Usage(input_tokens=len(task.prompt.split()), output_tokens=1))


async def converse(folder: str) -> str:
    """The explanation of the first turn of a run."""
    async with Loom(store="memory", engine=Measuring()) as app:
        run = await app.start(folder)
        await run.finished()
        return str(await app.explain.turn(run.id, 1))


with TemporaryDirectory() as folder:
    Path(folder, "orchestrator.yaml").write_text("initial_message: Hello.\n", "utf-8")
    Path(folder, "agents.yaml").write_text("Echo: {system_message: Repeat.}\n", "utf-8")
    print("\n".join(asyncio.run(converse(folder)).splitlines()[4:8]))
