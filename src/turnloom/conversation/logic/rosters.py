"""Declarations of a folder that need code, even if the folder has problems elsewhere."""

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from turnloom.agents.spec import (
    SELECTOR,
    TERMINATE,
    USER,
    WORKFLOW,
    Agent,
    ComponentChoice,
    ContextChoice,
    Script,
    Tool,
)
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.logic.tooling import check_message_hooks, read_lifecycle, read_tooling
from turnloom.conversation.spec import AGENT_WORDS, FOREIGN_SETUP, in_our_words, party
from turnloom.hooks.spec import LifecycleTool, MessageHook
from turnloom.kernel.documents import DeclarationFile, Folder, Path
from turnloom.kernel.models import DocumentEntry, Report, readable
from turnloom.kernel.values import Json, as_array, as_object

# Keys for agents of boards and flows only: message and remedy.
ELSEWHERE = {
    "best_of": (
        "`best_of` is not for conversations: every agent would see each sample.",
        "Use a flow or a board, or let `engines` answer one after the other.",
    ),
    "inherit": (
        "`inherit` is not for conversations: every agent sees every message.",
        "Use a board to limit who may see an artifact.",
    ),
}


class Roster(NamedTuple):
    """The valid agents of a folder with their positions, the script if it is valid with the
    positions of its functions, and the default model."""

    agents: Mapping[str, Agent]
    places: Mapping[str, tuple[str, int]]
    script: Script | None
    played: Mapping[str, tuple[str, int]]
    model: str | None = None


def roster(folder: Folder, broken: frozenset[str]) -> Roster:
    """The agents that need engines, even in a folder with problems elsewhere."""
    scope = Scope(Report(folder.name), folder, broken)
    agents = read_agents(scope)
    document = scope.document("script")
    script = scope.report.model(document, DocumentEntry((), document.value), Script)
    functions = script.functions if script else ()
    played = {name: _where((document, ("functions", name))) for name in functions}
    places = {name: _where(place) for name, place in scope.places.items()}
    setup = scope.orchestrator()
    script = None if "script" in broken else script
    return Roster(agents, places, script, played, model=setup.model if setup else None)


def declared_tools(folder: Folder, broken: frozenset[str]) -> list[tuple[tuple[str, int], Tool]]:
    """The valid tools of a folder with their positions, even if it has problems elsewhere."""
    tooling = read_tooling(Scope(Report(folder.name), folder, broken))
    return [(_where((tooling.document, each.path)), each.tool) for each in tooling.tools.values()]


def declared_hooks(
    folder: Folder, broken: frozenset[str]
) -> list[tuple[tuple[str, int], LifecycleTool]]:
    """The valid hooks of a folder with their positions, even if it has problems elsewhere."""
    scope = Scope(Report(folder.name), folder, broken)
    document = scope.document("tools")
    return [(_where((document, path)), hook) for path, hook in read_lifecycle(scope, document)]


def declared_message_hooks(
    folder: Folder, broken: frozenset[str]
) -> list[tuple[tuple[str, int], MessageHook]]:
    """The valid message hooks of a folder with their positions."""
    scope = Scope(Report(folder.name), folder, broken)
    document = scope.document("hooks")
    return [(_where((document, path)), hook) for path, hook in check_message_hooks(scope)]


class NamedFunction(NamedTuple):
    """A function that an entry names, and the position of the entry."""

    file: str
    function: str
    place: tuple[str, int]


def unread_functions(folder: Folder, broken: frozenset[str]) -> list[NamedFunction]:
    """The functions of tools and hooks that have faults, and so are not among the valid ones."""
    scope = Scope(Report(folder.name), folder, broken)
    tools, hooks = read_tooling(scope), check_message_hooks(scope)
    lifecycle = read_lifecycle(scope, tools.document)
    listed = scope.report.part(scope.document("hooks"), "hooks")
    value = as_object(tools.document.value) or {}
    return [
        *_unread(
            (tools.document, DocumentEntry(("tools",), value.get("tools"))),
            {(each.tool.file, each.tool.function) for each in tools.tools.values()},
        ),
        *_unread(
            (tools.document, DocumentEntry(("lifecycle_tools",), value.get("lifecycle_tools"))),
            {(each.declared.file, each.declared.function) for each in lifecycle},
        ),
        *_unread(
            (scope.document("hooks"), listed), {(hook.filename, hook.function) for _, hook in hooks}
        ),
    ]


def _unread(
    section: tuple[DeclarationFile, DocumentEntry], read: Set[tuple[str, str]]
) -> Iterator[NamedFunction]:
    document, entries = section
    for number, entry in enumerate(as_array(entries.value) or ()):
        said = as_object(entry) or {}
        file, function = said.get("file", said.get("filename")), said.get("function")
        is_named = all(isinstance(each, str) and each for each in (file, function))
        if is_named and (file, function) not in read:
            place = _where((document, (*entries.path, number)))
            yield NamedFunction(str(file), str(function), place)


def declared_components(
    folder: Folder, broken: frozenset[str]
) -> dict[str, list[tuple[tuple[str, int], ComponentChoice]]]:
    """The components of the valid agents of a folder with their positions."""
    scope = Scope(Report(folder.name), folder, broken)
    found: dict[str, list[tuple[tuple[str, int], ComponentChoice]]] = {}
    for name, agent in read_agents(scope).items():
        document, path = scope.places[name]
        places = [
            _where((document, (*path, "components", n))) for n in range(len(agent.components))
        ]
        found[name] = [*zip(places, agent.components, strict=True)]
    return found


class PlacedChoice(NamedTuple):
    """A choice of context, and its path."""

    choice: ContextChoice
    document: DeclarationFile
    path: Path

    def place(self, *keys: str | int) -> tuple[str, int]:
        """The file and line of one of its values."""
        return _where((self.document, (*self.path, *keys)))


def declared_contexts(folder: Folder, broken: frozenset[str]) -> dict[str, list[PlacedChoice]]:
    """The declared contexts of the valid agents of a folder."""
    scope = Scope(Report(folder.name), folder, broken)
    agents = read_agents(scope)
    return {
        name: [*placed_contexts(scope, agent)] for name, agent in agents.items() if agent.context
    }


def placed_contexts(scope: Scope, agent: Agent) -> Iterator[PlacedChoice]:
    """The declared contexts of an agent."""
    document, path = scope.places[agent.name]
    for number, choice in enumerate(agent.context):
        listed = (*path, "context", number)
        yield PlacedChoice(choice, document, listed if listed in document.places else listed[:-1])


def read_agents(scope: Scope) -> dict[str, Agent]:
    """The agents of a folder, as far as they can be read; the scope registers all names."""
    document = scope.document("agents")
    listed = scope.report.part(document, "agents")
    declared = scope.report.named(document, listed, "Agent")
    agents: dict[str, Agent] = {}
    for name, found in declared.entries.items():
        scope.agent_names.add(name)
        scope.places[name] = (document, found.path)
        _check_name(scope, document, found, name)
        own = scope.report.foreign(document, found, FOREIGN_SETUP)
        entry = _within_the_form(scope, document, own)
        agent = scope.report.model(document, entry, Agent) or readable(entry.value, Agent)
        if agent is not None:
            agents[name] = agent
            _check_sections(scope, document, found.path, agent)
    scope.code_answers = any(each.function for agent in agents.values() for each in agent.chain)
    complete = declared.complete and "agents" not in scope.broken
    nameless = sum(not _is_named(each) for each in as_array(listed.value) or ())
    # Names that outnumber the entries without one cannot all be theirs.
    is_known = complete or len({*_mentioned(scope)} - scope.agent_names) > nameless > 0
    scope.agents_known = is_known and bool(declared.entries) and "agents" not in scope.broken
    if complete and not declared.entries:
        scope.report.add(
            document,
            listed.path,
            "W011",
            "The workflow has no agents.",
            remedy="Declare at least one.",
        )
    return agents


def _is_named(item: Json) -> bool:
    name = (as_object(item) or {}).get("name")
    return isinstance(name, str) and bool(name)


def _mentioned(scope: Scope) -> Iterator[str]:
    """The agents that handoffs and tools name."""
    rules = scope.report.part(scope.document("handoffs"), "handoff_rules").value
    tools = as_object(scope.document("tools").value) or {}
    keys = ("source_agent", "target_agent", "agent")
    for entry in (*(as_array(rules) or ()), *(as_array(tools.get("tools")) or ())):
        named = (as_object(entry) or {}).get
        said = (name for key in keys for name in as_array(named(key)) or [named(key)])
        names = (party(name, ()) for name in said if isinstance(name, str))
        yield from (name for name in names if name not in (USER, TERMINATE))


def _within_the_form(
    scope: Scope, document: DeclarationFile, found: DocumentEntry
) -> DocumentEntry:
    """An agent without the keys of other forms, which are reported, and with our words."""
    value = as_object(found.value)
    for key in (value or {}).keys() & ELSEWHERE.keys():
        message, remedy = ELSEWHERE[key]
        scope.report.add(document, (*found.path, key), "W074", message, remedy=remedy)
    if value is None:
        return found
    kept = {key: each for key, each in value.items() if key not in ELSEWHERE}
    return DocumentEntry(found.path, in_our_words(kept, AGENT_WORDS))


def _check_name(scope: Scope, document: DeclarationFile, found: DocumentEntry, name: str) -> None:
    if name in (USER, TERMINATE, WORKFLOW, SELECTOR):
        scope.report.add(
            document,
            found.path,
            "W026",
            f"An agent cannot have the name {name!r}, which is reserved.",
            remedy="Choose another name.",
        )


def _check_sections(scope: Scope, document: DeclarationFile, path: Path, agent: Agent) -> None:
    ids = [section.id for section in agent.prompt_sections]
    for number, id in enumerate(ids):
        if id and id in ids[:number]:
            where = (*path, "prompt_sections", number, "id")
            message = f"Agent {agent.name!r} has two sections {id!r}."
            scope.report.add(document, where, "W013", message, remedy="Rename one of them.")


def _where(place: tuple[DeclarationFile, Path]) -> tuple[str, int]:
    document, path = place
    return document.file, document.place(path).line
