"""A custom kind of trigger: it fires when an agent writes in capitals."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from turnloom import UNCHANGED, Loom
from turnloom.testing import ScriptedEngine
from turnloom.variables.logic.triggers import Listener, register
from turnloom.variables.spec.triggers import Setting


class Shouted(Setting):
    """Fires when a message has only capitals; `Setting` gives it `value` and `once`."""

    type: Literal["shouted"]
    agent: str


def listen(trigger: Shouted, writer: str) -> Listener:
    """Return the listener of the trigger."""

    def read(fact: Any, seen: Any) -> Any:
        return trigger.value if fact.text.isupper() else UNCHANGED

    return Listener((("agent.text", trigger.agent),), read)


register(Shouted, listen)

VARIABLES = """
definitions:
  loud:
    type: boolean
    source:
      type: derived
      default: false
      triggers: [{ type: shouted, agent: Crier }]
agents:
  Crier: { variables: [loud] }
"""


async def main() -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "agents.yaml").write_text("Crier: { system_message: Cry. }\n", "utf-8")
        (Path(folder) / "context_variables.yaml").write_text(VARIABLES, "utf-8")
        engine = ScriptedEngine({"Crier": ["HEAR YE"]})
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(folder)
            await run.finished()
            for event in await app.history.events(run.id):
                if event.kind == "context.changed":
                    print(event.data.name, event.data.value, event.data.writer)


asyncio.run(main())
