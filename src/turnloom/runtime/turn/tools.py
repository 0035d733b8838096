"""The tools offered to an agent in a turn, and their implementations."""

from collections.abc import Mapping
from itertools import chain, count
from typing import Any, NamedTuple

from msgspec import structs

from turnloom.agents.logic.views import digest_of
from turnloom.agents.spec import DIGEST, Agent, Callee, RunState, ToolSchema, ToolServer, Transfer
from turnloom.kernel.values import Json
from turnloom.runtime.journal import Journal
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.spec import Context

NOTHING: Mapping[str, "OfferedTool"] = {}

# Seconds that the digest of a context may take.
SOON = 5.0


class OfferedTool(NamedTuple):
    """A tool of an agent: code to call, or a handoff to choose.

    An `auto` tool takes the agent's output; the engine is not shown it.
    """

    schema: ToolSchema
    callee: Callee | None = None
    timeout: float = SOON
    auto: bool = False
    transfer: Transfer | None = None


def offers_to(agent: Agent, journal: Journal, loaded: LoadedWorkflow) -> Mapping[str, OfferedTool]:
    """The tools of an agent at this moment, by name."""
    workflow, state = journal.workflow, journal.state
    transfers = workflow.transfers(agent.name, state)
    if not (transfers or agent.tools or agent.name in workflow.toolkit.bound or state.offered):
        return NOTHING
    found: dict[str, OfferedTool] = {}
    for tool in workflow.toolkit.of(agent.name):
        callee = loaded.tools[tool.title]
        auto = (tool.auto_invoke or agent.auto_tool_mode) and agent.name in workflow.outputs
        said = workflow.toolkit.described.get((agent.name, tool.title))
        schema = structs.replace(callee.schema, description=said) if said else callee.schema
        found[tool.title] = OfferedTool(schema, callee, tool.timeout_s, auto)
    if DIGEST in agent.tools and DIGEST not in found:
        found[DIGEST] = OfferedTool(_DIGEST_SCHEMA, Digest(agent.name, journal))
    for server in workflow.toolkit.servers:
        if server.agent in (None, agent.name):
            for schema in state.offered.get(server.name, ()):
                name = schema.name if schema.name not in found else f"{server.name}_{schema.name}"
                remote = Remote(loaded.servers[server.name](state.tenant), schema.name, schema)
                shown = _named(_free(name, found), schema)
                found[shown.name] = OfferedTool(shown, remote, server.timeout_s)
    for transfer in transfers:
        shown = _named(_free(transfer.schema.name, found), transfer.schema)
        found[shown.name] = OfferedTool(shown, transfer=transfer)
    return found


def _free(name: str, found: Mapping[str, OfferedTool]) -> str:
    """The name, numbered if another tool has it."""
    numbered = (f"{name}_{number}" for number in count(2))
    return next(each for each in chain((name,), numbered) if each not in found)


def _named(name: str, schema: ToolSchema) -> ToolSchema:
    return ToolSchema(name, schema.description, schema.parameters)


_NO_ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
_DIGEST_SCHEMA = ToolSchema(
    DIGEST, "A digest of the context variables that you may see.", _NO_ARGUMENTS
)


class Digest:
    """Gives an agent a digest of the variables that it may see."""

    schema = _DIGEST_SCHEMA
    may_ask = False

    def __init__(self, agent: str, journal: Journal) -> None:
        self._agent = agent
        self._journal = journal

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """The variables, a few characters each."""
        state: RunState = self._journal.state
        return digest_of(self._agent, self._journal.workflow.variables, state)


class Remote:
    """A tool of another program."""

    may_ask = False

    def __init__(self, server: ToolServer, name: str, schema: ToolSchema) -> None:
        self.schema = schema
        self._server = server
        self._name = name

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """The result of the program's tool."""
        return await self._server.call(self._name, arguments)
