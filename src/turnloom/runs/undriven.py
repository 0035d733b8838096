"""Runs that are recorded here and driven elsewhere, or not at all."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from turnloom.agents.spec import (
    Agent,
    Decision,
    OutputModel,
    Products,
    Rest,
    RunState,
    Toolkit,
    Transfer,
)
from turnloom.lifecycle.spec import Hooks, MessageHook
from turnloom.log.spec import Fact
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

# The form of a group chat that another library drives.
CHAT = "chat"


class Undriven:
    """A form that decides nothing: of a chat of another library, or of a run whose definition
    cannot be restored."""

    form = CHAT
    version = ""
    agents: Mapping[str, Agent] = {}
    outputs: Mapping[str, OutputModel] = {}
    products: Mapping[str, Products] = {}
    hooks: Hooks = {}
    message_hooks: tuple[MessageHook, ...] = ()
    progress = type(None)
    folds: Mapping[type, Callable[[Any, Any], None]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.variables = Variables()
        self.triggers = Triggers({})
        self.toolkit = Toolkit()

    def begin(self) -> None:
        """It has no state of its own."""

    def decide(self, state: RunState) -> Decision:
        """Nothing."""
        return Rest()

    def due(self, state: RunState) -> datetime | None:
        """Never."""
        return None

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """Nothing."""
        return ()

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another: none."""
        return ()

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """No handoffs."""
        return ()

    def shows(self, agent: str) -> bool:
        """Everything is shown."""
        return True
