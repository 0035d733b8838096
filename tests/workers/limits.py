"""A workflow of one agent with a model, and an engine that counts its calls."""

import asyncio
from pathlib import Path

from turnloom import Answer, Task


class ModelLoad:
    """An engine that counts its calls at once; `held`, it answers when it is released."""

    def __init__(self, *, held: bool = False) -> None:
        self.calls = self.most = self._going = 0
        self.begun, self.release = asyncio.Event(), asyncio.Event()
        if not held:
            self.release.set()

    async def __call__(self, task: Task) -> Answer:
        self.calls += 1
        self._going += 1
        self.most = max(self.most, self._going)
        self.begun.set()
        try:
            await self.release.wait()
            for _ in range(20):  # whoever may be driven beside this one gets that far
                await asyncio.to_thread(int)
        finally:
            self._going -= 1
        return Answer("Done.")


def limited_folder(below: Path, model: str = "fast") -> str:
    """A workflow folder whose one agent names a model."""
    folder = below / "Single"
    folder.mkdir(parents=True)
    (folder / "agents.yaml").write_text(
        f"agents:\n  Writer:\n    system_message: Write.\n    model: {model}\n"
    )
    (folder / "orchestrator.yaml").write_text(
        "startup_mode: BackendOnly\ninitial_agent: Writer\ninitial_message: Write two lines.\n"
    )
    (folder / "handoffs.yaml").write_text(
        "handoff_rules:\n  - { source_agent: Writer, target_agent: terminate, "
        "handoff_type: after_work }\n"
    )
    return str(folder)
