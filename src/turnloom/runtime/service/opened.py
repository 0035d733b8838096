"""A run in memory."""

from datetime import datetime

from turnloom.agents.events import ToolsOffered
from turnloom.board.ports import ArtifactStore
from turnloom.errors import ToolServerError
from turnloom.guards.service.selecting import Selecting
from turnloom.runtime.service.functions import Values
from turnloom.runtime.service.gathering import Gatherer
from turnloom.runtime.service.hooks import HookRunner
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.service.selections import Selections, Wanted
from turnloom.runtime.service.turn import Turns
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.exposure import names_of


class Opened:
    """A run in memory: its journal, what takes its turns and runs its hooks, and who chooses."""

    def __init__(
        self,
        journal: Journal,
        loaded: Loaded,
        artifacts: ArtifactStore,
        selecting: Selecting,
        frozen: int,
        began: datetime,
    ) -> None:
        self.journal = journal
        self.loaded = loaded
        self.frozen = frozen
        self.began = began
        self.driven = False
        self._hides: dict[str, bool] = {}
        self.hooks = HookRunner(journal, loaded.hooks)
        self.selections = Selections(journal, loaded.guards, selecting)
        gatherer = Gatherer(journal, loaded, artifacts)
        self.turns = Turns(journal, loaded, self.hooks, gatherer, self.selections)

    def hides(self, agent: str) -> bool:
        """Whether an answer of the agent may have to be hidden, or a secret in it to be masked."""
        if agent not in self._hides:
            self._hides[agent] = _may_hide(self.journal, agent)
        return self._hides[agent]

    async def select(self, id: str, meant: str) -> None:
        """Let a guard choose who gets the turn that would go to one of its candidates."""
        selection = self.selections.own
        assert selection is not None
        wanted = Wanted(selection.candidates, Values(self.journal.state.values), meant)
        await self.selections.choose(id, selection, wanted)

    async def offer(self) -> None:
        """Put on record what servers of tools offer to this run, once."""
        journal = self.journal
        for server in journal.workflow.toolkit.servers:
            if server.name in journal.state.offered:
                continue
            try:
                offered = await self.loaded.servers[server.name].tools()
                wanted = [tool for tool in offered if not server.tools or tool.name in server.tools]
                fact = ToolsOffered(server.name, tuple(wanted))
            except ToolServerError as error:
                fact = ToolsOffered(server.name, (), str(error))
            await journal.put(f"chat/server.{server.name}", fact)


def _may_hide(journal: Journal, agent: str) -> bool:
    workflow, secrets = journal.workflow, journal.secrets
    exposure = workflow.variables.exposures.get(agent)
    knows = exposure is not None and any(name in secrets for name in names_of(exposure))
    return knows or not workflow.shows(agent) or workflow.triggers.may_hide(agent)
