"""The form of runs that are recorded but not driven here."""

from collections.abc import Mapping, Sequence, Set
from datetime import datetime

from turnloom.agents.spec import (
    Agent,
    OutputModel,
    Products,
    RunState,
    Toolkit,
    Transfer,
)
from turnloom.errors import WorkflowGone
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event, Fact
from turnloom.runs.actions import Action, Work
from turnloom.runs.form import Form, Rest
from turnloom.runs.retries import Redo
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

# The form of a group chat that another library drives.
CHAT = "chat"


def refuse_undriven(started: RunStarted) -> None:
    """Refuse to decide a run again that another library decided.

    Raises:
        WorkflowGone: it is such a run.
    """
    if started.form == CHAT:
        raise WorkflowGone(
            f"This run of {started.workflow!r} is a group chat of another program, which decided "
            "everything in it. Explain it instead."
        )


class Undriven:
    """A form that decides nothing: of a chat of another library, or of a run whose definition
    cannot be restored."""

    form = CHAT
    has_people = True
    hears = False
    version = ""
    agents: Mapping[str, Agent] = {}
    outputs: Mapping[str, OutputModel] = {}
    products: Mapping[str, Products] = {}
    hooks: Hooks = {}
    message_hooks: tuple[MessageHook, ...] = ()
    progress = type(None)

    def __init__(self, name: str) -> None:
        self.name = name
        self.variables = Variables()
        self.triggers = Triggers({})
        self.toolkit = Toolkit()

    def begin(self) -> None:
        """No state."""

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold nothing."""

    def decide(self, state: RunState) -> Action | None:
        """Nothing."""
        return None

    def work(self, state: RunState) -> Sequence[Work]:
        """Nothing."""
        return ()

    def rest(self, state: RunState) -> Rest:
        """Nothing to wait for."""
        return Rest()

    def due(self, state: RunState) -> datetime | None:
        """Never."""
        return None

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """Nothing."""
        return ()

    def alternatives(self, state: RunState) -> Sequence[str]:
        """No agents."""
        return ()

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """No handoffs."""
        return ()

    def shows(self, agent: str) -> bool:
        """Show every message."""
        return True

    def redo(
        self,
        events: Sequence[Event],
        stop: Event | None,
        since: int | str | None = None,
        at: int | None = None,
    ) -> Redo | None:
        """Nothing."""
        return None

    def misplaced(self, before: Form, events: Sequence[Event]) -> Set[int]:
        """Nothing."""
        return frozenset()
