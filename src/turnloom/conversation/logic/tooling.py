"""Check the tools, MCP servers and hooks of a workflow."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from turnloom.agents.logic.outputs.checking import check_response
from turnloom.agents.spec import DIGEST, SELECTOR, Agent, DeclaredServer, Outputs, Tool, Toolkit
from turnloom.conversation.logic.rules import check_condition
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.spec import FOREIGN_TOOL, FOREIGN_UI, TOOL_WORDS, in_our_words, usual
from turnloom.hooks.logic import CheckedHook, order_hooks, read_hooks
from turnloom.hooks.spec import ALL, Hooks, MessageHook
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry, readable
from turnloom.kernel.values import Json, as_array, as_object, nearest

_KEYS = ("tools", "lifecycle_tools", "mcp_servers")


class DeclaredTool(NamedTuple):
    """A declared tool that is valid by itself, its path, its agents with their paths, and what
    entries for further agents say of it."""

    path: Path
    tool: Tool
    agents: Mapping[Path, str] = MappingProxyType({})
    described: Mapping[str, str] = MappingProxyType({})


class Tooling(NamedTuple):
    """The declarations of a tools file that are valid by themselves."""

    document: DeclarationFile
    tools: Mapping[str, DeclaredTool]
    servers: Mapping[str, DeclaredServer]
    complete: bool

    @property
    def asking(self) -> set[str]:
        """The words that identify what asks people: tools, and hooks with their components."""
        declared = as_object(self.document.value) or {}
        found = {*self.words}
        for item in as_array(declared.get("lifecycle_tools")) or ():
            hook = as_object(item) or {}
            component = (as_object(hook.get("ui")) or {}).get("component")
            words = (hook.get("name"), hook.get("function"), component)
            found |= {word for word in words if isinstance(word, str)}
        return found

    @property
    def words(self) -> dict[str, str]:
        """The words that identify tools: their names, functions and components."""
        found: dict[str, str] = {}
        for name, (_, tool, *_) in self.tools.items():
            component = tool.ui.component if tool.ui else None
            for word in (name, tool.function, component):
                if word:
                    found.setdefault(word, name)
        return found


def read_tooling(scope: Scope) -> Tooling:
    """The tools and servers that the tools file declares."""
    document = scope.document("tools")
    value = as_object(document.value)
    if value is None:
        if document.value is not None:
            message = "The tools file must be an object."
            scope.report.add(document, (), "W012", message, remedy=f"Write `{'`, `'.join(_KEYS)}`.")
        return Tooling(document, {}, {}, document.value is None)
    for key in value:
        if key not in _KEYS:
            scope.report.unknown(document, (key,), _KEYS)
    tools, all_valid = _tools(scope, document, value.get("tools"))
    listed = DocumentEntry(("mcp_servers",), value.get("mcp_servers"))
    servers = scope.report.named(document, listed, "MCP server")
    read = {
        name: server
        for name, entry in servers.entries.items()
        if (server := scope.report.model(document, entry, DeclaredServer)) is not None
    }
    complete = all_valid and "tools" not in scope.broken
    return Tooling(document, tools, read, complete)


def _tools(
    scope: Scope, document: DeclarationFile, value: Any
) -> tuple[dict[str, DeclaredTool], bool]:
    """The valid tools by name, and whether these are all that are declared."""
    items = as_array(value)
    if items is None:
        if value is not None:
            message = "'tools' must be an array."
            scope.report.add(
                document, ("tools",), "W012", message, remedy="Write one entry per tool."
            )
        return {}, value is None
    found: dict[str, DeclaredTool] = {}
    complete = True
    for number, item in enumerate(items):
        path: Path = ("tools", number)
        own, agents = _holders(_in_our_words(scope, document, DocumentEntry(path, item)))
        tool = scope.report.model(document, own, Tool)
        if tool is None:
            complete = False
            tool = readable(own.value, Tool)
        if tool is None:
            _check_unread(scope, document, (*path, "agent"), item, role="has a tool")
            continue
        earlier = found.get(tool.title)
        if earlier is not None and _is_same(earlier, tool, agents):
            found[tool.title] = _shared(earlier, tool, agents)
        elif problem := _taken(tool.title, found):
            scope.report.add(document, path, *problem, "Give it another `name`.")
        else:
            found[tool.title] = DeclaredTool(path, tool, agents)
    return found, complete


def _in_our_words(scope: Scope, document: DeclarationFile, entry: DocumentEntry) -> DocumentEntry:
    """A tool without what another system reads, and with our words for synonyms."""
    known = scope.report.foreign(document, entry, FOREIGN_TOOL)
    value = as_object(known.value)
    if value is None:
        return known
    own = in_our_words(value, TOOL_WORDS)
    if "tool_type" in own:
        own["tool_type"] = usual(own["tool_type"])
    if as_object(own.get("ui")) is not None:
        ui = DocumentEntry((*entry.path, "ui"), own["ui"])
        own["ui"] = scope.report.foreign(document, ui, FOREIGN_UI).value
    return DocumentEntry(entry.path, own)


def _holders(entry: DocumentEntry) -> tuple[DocumentEntry, dict[Path, str]]:
    """A tool that names one agent at most, and all agents that it names, with their paths."""
    value = as_object(entry.value) or {}
    agent, path = value.get("agent"), (*entry.path, "agent")
    names = as_array(agent)
    if names is None:
        return entry, {path: agent} if isinstance(agent, str) else {}
    if not names or not all(isinstance(name, str) for name in names):
        return entry, {}
    own = DocumentEntry(entry.path, {**value, "agent": names[0]})
    return own, {(*path, number): name for number, name in enumerate(names)}


def _is_same(earlier: DeclaredTool, tool: Tool, agents: Mapping[Path, str]) -> bool:
    """Whether an entry gives an earlier tool to more agents."""
    differing = {"agent": None, "description": ""}
    first, second = (each.model_copy(update=differing) for each in (earlier.tool, tool))
    new = set(agents.values()) - set(earlier.agents.values())
    return first == second and bool(new) and bool(earlier.agents)


def _shared(earlier: DeclaredTool, tool: Tool, agents: Mapping[Path, str]) -> DeclaredTool:
    """A tool that more agents have; an entry may describe it in other words to its agents."""
    is_new = tool.description not in ("", earlier.tool.description)
    own = dict.fromkeys(agents.values(), tool.description) if is_new else {}
    return earlier._replace(
        agents={**earlier.agents, **agents}, described={**earlier.described, **own}
    )


def _check_unread(
    scope: Scope, document: DeclarationFile, path: Path, item: Any, role: str
) -> None:
    """Check the agent of an entry that cannot be read as a whole."""
    agent = (as_object(item) or {}).get(str(path[-1]))
    if isinstance(agent, str) and agent != ALL:
        scope.check_agent(document, path, agent, role)


def _taken(name: str, found: Mapping[str, DeclaredTool]) -> tuple[str, str] | None:
    """The code and message for a tool's name that is reserved or taken."""
    if name == SELECTOR:
        return "W026", f"A tool cannot have the name {name!r}, which is reserved."
    if name == DIGEST:
        return "W013", f"Tool {DIGEST!r} is built in."
    return ("W013", f"Tool {name!r} is declared twice.") if name in found else None


def check_toolkit(
    scope: Scope, tooling: Tooling, agents: Mapping[str, Agent], outputs: Outputs
) -> Toolkit:
    """The tools with their agents, and the schemas of people's answers."""
    bound: dict[str, list[str]] = {}
    for name, (path, tool, holders, *_) in tooling.tools.items():
        document = tooling.document
        for where, agent in holders.items():
            if scope.check_agent(document, where, agent, f"has tool {name!r}"):
                bound.setdefault(agent, []).append(name)
        if tool.tool_type == "UI_Tool":
            scope.asking.append((document, path, name))
        elif tool.ui is not None:
            message = f"Tool {name!r} has `ui`, which only UI tools use."
            remedy = "Set `tool_type: UI_Tool`, or remove `ui`."
            scope.report.warn(document, (*path, "ui"), "W015", message, remedy=remedy)
    _bind_listed(scope, tooling, agents, bound)
    _check_bound(scope, tooling, agents, bound, outputs=outputs)
    _check_modes(scope, agents, outputs)
    for server in tooling.servers.values():
        if server.agent is not None:
            where = ("mcp_servers",)
            scope.check_agent(tooling.document, where, server.agent, f"has {server.name!r}")
    return Toolkit(
        {name: each.tool for name, each in tooling.tools.items()},
        {agent: tuple(names) for agent, names in bound.items()},
        tuple(tooling.servers.values()),
        tooling.words,
        responses=dict(_responses(scope, tooling, outputs)),
        described={
            (agent, name): said
            for name, each in tooling.tools.items()
            for agent, said in each.described.items()
        },
    )


def _bind_listed(
    scope: Scope, tooling: Tooling, agents: Mapping[str, Agent], bound: dict[str, list[str]]
) -> None:
    """Bind the tools that agents list."""
    known = [*tooling.tools, DIGEST]
    for agent in agents.values():
        document, path = scope.places[agent.name]
        for number, name in enumerate(agent.tools):
            if name in tooling.tools:
                names = bound.setdefault(agent.name, [])
                names += [name] if name not in names else []
            elif name != DIGEST and tooling.complete:
                hint = nearest(name, known)
                remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(known)}."
                message = f"Agent {agent.name!r} has tool {name!r}, which is not declared."
                scope.report.add(document, (*path, "tools", number), "W045", message, remedy=remedy)


def _check_bound(
    scope: Scope,
    tooling: Tooling,
    agents: Mapping[str, Agent],
    bound: Mapping[str, list[str]],
    outputs: Outputs,
) -> None:
    """Report tools without an agent, and tools that take an output which their agent lacks."""
    holders: dict[str, list[str]] = {}
    for agent, names in bound.items():
        for name in names:
            holders.setdefault(name, []).append(agent)
    for name, (path, tool, *_) in tooling.tools.items():
        if name not in holders and tool.agent is None and tooling.complete:
            message = f"No agent has tool {name!r}."
            remedy = "Name one as its `agent`, list it under an agent's `tools`, or remove it."
            scope.report.warn(tooling.document, path, "W046", message, remedy=remedy)
        for agent in holders.get(name, ()) if tool.auto_invoke and outputs.complete else ():
            if agent in agents and agent not in outputs.registry:
                message = f"{agent!r} has no output model, so that its model calls tool {name!r}."
                remedy = "Declare one in `structured_outputs`, or drop `auto_invoke`."
                scope.report.warn(
                    tooling.document, (*path, "auto_invoke"), "W015", message, remedy=remedy
                )


def _check_modes(scope: Scope, agents: Mapping[str, Agent], outputs: Outputs) -> None:
    """Report agents with `auto_tool_mode` but without an output model."""
    for agent in agents.values():
        if agent.auto_tool_mode and outputs.complete and agent.name not in outputs.registry:
            document, path = scope.places[agent.name]
            message = (
                f"Agent {agent.name!r} has `auto_tool_mode`, which has no effect without an output "
                "model."
            )
            remedy = "Declare one in `structured_outputs`, or drop `auto_tool_mode`."
            scope.report.warn(document, (*path, "auto_tool_mode"), "W047", message, remedy=remedy)


def _responses(scope: Scope, tooling: Tooling, outputs: Outputs) -> Iterator[tuple[str, Json]]:
    """The JSON Schemas of people's answers to tools."""
    for name, (path, tool, *_) in tooling.tools.items():
        if tool.ui is not None and tool.ui.response is not None:
            entry = DocumentEntry((*path, "ui", "response"), tool.ui.response)
            model = check_response(scope.report, tooling.document, entry, outputs)
            if model is not None:
                yield name, model.schema


def read_lifecycle(scope: Scope, document: DeclarationFile) -> list[CheckedHook]:
    """The hooks that the tools file declares, as far as they can be read."""
    declared = as_object(document.value) or {}
    entry = DocumentEntry(("lifecycle_tools",), declared.get("lifecycle_tools"))
    return read_hooks(scope.report, document, entry)


def check_message_hooks(scope: Scope) -> list[tuple[Path, MessageHook]]:
    """The valid message hooks of a workflow with their paths."""
    document = scope.document("hooks")
    entry = scope.report.part(document, "hooks")
    items = as_array(entry.value)
    if items is None:
        if entry.value:
            message = "Message hooks must be a list under `hooks`."
            scope.report.add(
                document, entry.path, "W012", message, remedy="Write one entry per hook."
            )
        return []
    found: list[tuple[Path, MessageHook]] = []
    for number, item in enumerate(items):
        path = (*entry.path, number)
        hook = scope.report.model(document, DocumentEntry(path, item), MessageHook)
        if hook is None:
            _check_unread(scope, document, (*path, "hook_agent"), item, role="has a hook")
        else:
            if hook.hook_agent != ALL:
                scope.check_agent(document, (*path, "hook_agent"), hook.hook_agent, "has a hook")
            found.append((path, hook))
    return found


def check_hooks(scope: Scope, tooling: Tooling) -> Hooks:
    """The hooks of a workflow by trigger, in the order in which they run."""
    document = tooling.document
    checked = read_lifecycle(scope, document)
    conditions = {
        number: check_condition(scope, document, (*each.path, "when"), each.declared.when)
        for number, each in enumerate(checked)
        if each.declared.when is not None
    }
    for each in checked:
        if each.declared.agent is not None:
            where = (*each.path, "agent")
            scope.check_agent(document, where, each.declared.agent, "has a hook")
    read = {each.path for each in checked}
    items = as_array((as_object(document.value) or {}).get("lifecycle_tools")) or ()
    unread = {
        path: item
        for number, item in enumerate(items)
        if (path := ("lifecycle_tools", number)) not in read
    }
    for path, item in unread.items():
        _check_unread(scope, document, (*path, "agent"), item, role="has a hook")
    found = [*unread.values()]
    return order_hooks(scope.report, document, checked, conditions, unread=found)
