"""Workflow folders: checked, loaded, and restored for runs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path as FilePath
from typing import Any

import msgspec
from anyio import to_thread

from turnloom.agents.spec import SELECTOR, Agent, Component, DeclaredServer, Engine, ToolServer
from turnloom.assembly.spec.means import no_search
from turnloom.board.spec import TypeRegistry
from turnloom.conversation.logic import checking as leniency
from turnloom.conversation.logic.checking import check_production, declared_guards, unreadable
from turnloom.conversation.logic.migrating import todays_folder
from turnloom.conversation.logic.rosters import declared_contexts, roster
from turnloom.conversation.logic.routing import ConversationForm
from turnloom.conversation.logic.scope import OLDER
from turnloom.conversation.service import CheckedFolders
from turnloom.conversation.spec import Conversation
from turnloom.errors import DefinitionError, Diagnostic, WorkflowGone
from turnloom.kernel.documents import Folder
from turnloom.kernel.threads import LOADING, threads
from turnloom.log.events import RunStarted
from turnloom.runtime.conversation import TalkRuntime
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow, TenantServer
from turnloom.variables.logic.checking import file_variables
from turnloom.wiring.adapters import adapter
from turnloom.wiring.code import NO_CODE_FILE, Code
from turnloom.wiring.collections import Collections, comparing, counter_for
from turnloom.wiring.contexts import FolderContexts, Registered
from turnloom.wiring.engines import UNNAMED, Depth, Engines, scripted
from turnloom.wiring.models import ModelEngines, own_contexts
from turnloom.wiring.servers import Connect
from turnloom.wiring.servers import connect as reach

# The diagnostic of a file that is no part of a workflow.
NO_PART = "W007"

log = logging.getLogger("turnloom.check")

# Called with each file before its code runs; may raise `DefinitionError` to refuse it.
Loading = Callable[[str], None]

# Number of parsed files in the cache.
PARSED = 256


class Folders:
    """Workflow folders. `engine` is the default of agents that choose none.

    `production` adds checks for deployments. Unless `strict`, invalid context variables are ignored
    with a warning. `connect` replaces the connection to tool servers; `types`, `collections` and
    `models` belong to the app.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        production: bool = False,
        strict: bool = True,
        connect: Connect | None = None,
        types: TypeRegistry | None = None,
        collections: Collections | None = None,
        models: ModelEngines | None = None,
    ) -> None:
        self._models = models or ModelEngines()
        self._engines = Engines(engine, self._models)
        self._collections = collections
        self._types = types
        self._connect = connect or reach
        self._production = production
        self._strict = strict
        # Each load reads the files and runs the code again; only parsed texts are cached.
        self._parse: Any = lru_cache(PARSED)(adapter("files").parse)
        self._checked = CheckedFolders()
        self._restored: dict[tuple[Any, ...], LoadedWorkflow] = {}
        self._library: FilePath | None = None
        # Connections to tool servers: those of tenants, and spare ones for the next tenant.
        self._used: dict[tuple[str, str], dict[str, ToolServer]] = {}
        self._unused: dict[tuple[str, str], ToolServer] = {}

    async def load(self, source: str) -> LoadedWorkflow:
        """Load a folder for a run, and log its warnings."""
        loaded, problems = await to_thread.run_sync(
            self._examine, source, "run", limiter=threads(LOADING)
        )
        if loaded is None:
            raise DefinitionError(FilePath(source).name, problems)
        if problems:
            lines = "\n".join(f"  {problem}" for problem in problems)
            log.warning("Workflow %r %s:\n%s", loaded.workflow.name, _outcome(loaded), lines)
        # Runs of this workflow restore it soon, and share its modules.
        self._restored.setdefault(
            _identity(loaded.root, loaded.definition, loaded.set_aside, loaded.code), loaded
        )
        return loaded

    def look_in(self, library: str) -> None:
        """Find the folders of runs below this one, by their names, before the place where they were
        when the runs started."""
        self._library = FilePath(library)

    async def restore(self, started: RunStarted) -> LoadedWorkflow:
        """Return the workflow as it was when the run started, with the current code."""
        if self._library and (here := self._library / FilePath(started.root).name).is_dir():
            started = msgspec.structs.replace(started, root=str(here))
        key = _identity(started.root, started.definition, started.set_aside, started.code)
        if key not in self._restored:
            self._restored[key] = await to_thread.run_sync(
                self._restore, started, "run", limiter=threads(LOADING)
            )
        return self._restored[key]

    def recall(self, started: RunStarted) -> LoadedWorkflow:
        """Return the workflow as it was when the run started, for display. Engines are not
        required."""
        return self._restore(started, "folder")

    def examine(
        self, source: str, loading: Loading | None = None
    ) -> tuple[LoadedWorkflow | None, list[Diagnostic]]:
        """Check a folder. Return its workflow if it is valid, and all diagnostics.

        Agents need no engine, since the deployment may provide it. `loading` is called with each
        file before its code runs.
        """
        return self._examine(source, "folder", loading)

    def examine_here(self, source: str, loading: Loading | None = None) -> list[Diagnostic]:
        """Check a folder; if it is valid, check that each agent has an engine. Models are not
        contacted."""
        _, found = self._examine(source, "settings", loading)
        own = [problem for problem in found if problem.remedy != UNNAMED]
        errors = (each for each in own if each.severity == "error" and each.code != OLDER)
        return own if any(errors) else found

    def _examine(
        self, source: str, depth: Depth, loading: Loading | None = None
    ) -> tuple[LoadedWorkflow | None, list[Diagnostic]]:
        folder, problems = adapter("files").read_folder(source, self._parse)
        loaded, found = self._make(folder, problems, depth=depth, loading=loading)
        if loaded is not None or self._strict or not leniency.is_invalid(found):
            return loaded, found
        aside = (leniency.OPTIONAL,)
        loaded, more = self._make(folder, problems, set_aside=aside, depth=depth, loading=loading)
        return loaded, [*found, *(problem for problem in more if problem not in found)]

    def _restore(self, started: RunStarted, depth: Depth) -> LoadedWorkflow:
        name = FilePath(started.root).name
        folder, problems = adapter("files").restore_folder(
            name, started.root, started.files, started.code, parse=self._parse
        )
        current, _ = adapter("files").read_folder(started.root, self._parse)
        changed = tuple(
            file for file, digest in started.code.items() if current.code.get(file) != digest
        )
        aside = started.set_aside
        loaded, problems = self._make(folder, problems, changed, aside, depth=depth, is_begun=True)
        lost = any(problem.code == NO_CODE_FILE for problem in problems)
        if loaded is None and lost and not FilePath(started.root).is_dir():
            raise WorkflowGone(
                f"The workflow folder {started.root!r} of this run is missing. Restore it to "
                "continue the run, which needs its code."
            )
        if loaded is None:
            raise DefinitionError(name, problems)
        return loaded

    def _make(
        self,
        folder: Folder,
        problems: list[Diagnostic],
        changed: tuple[str, ...] = (),
        set_aside: tuple[str, ...] = (),
        *,
        depth: Depth = "run",
        is_begun: bool = False,
        loading: Loading | None = None,
    ) -> tuple[LoadedWorkflow | None, list[Diagnostic]]:
        todays, to_run = todays_folder(folder), depth == "run"
        problems = _without_data(problems, todays.folder)
        unread = [each for each in problems if not (set_aside and leniency.is_about(each))]
        broken = unreadable(unread)
        conversation, found = self._checked.check(folder, broken, frozenset(set_aside))
        folder, modules = todays.folder, adapter("files").Modules(folder.root, loading)
        code = Code(modules, folder, broken, todays.stubs)
        engines, unasked = self._engines.choose(code, roster(folder, broken), depth)
        tools, hooks, message_hooks = code.tools(), code.hooks(), code.message_hooks()
        components = code.components()
        functions = {} if set_aside else code.derivations()
        data = {} if set_aside or is_begun else code.data()
        guards, known = (
            code.guards(declared_guards(folder, broken)),
            declared_contexts(folder, broken),
        )
        contexts = FolderContexts(code, known, Registered(self._collections, to_run))
        chosen, types = contexts.chosen(), contexts.types(self._types)
        # A source and its declaration may report the same problem.
        problems = [*dict.fromkeys([*problems, *found, *unasked, *code.problems])]
        if conversation is None:
            return None, problems
        if self._production:
            problems += check_production(folder, conversation)
        if (unasked and not is_begun) or not code.is_sound:
            return None, problems
        if to_run and self._collections:
            self._collections.open_named(chosen.values())
        setup = conversation.orchestrator
        agents = conversation.agents.values()
        staff = {agent.name: _staff(agent, engines, chosen, components) for agent in agents}
        loaded = LoadedWorkflow(
            ConversationForm(conversation),
            staff,
            folder.root,
            conversation.digest,
            files=adapter("files").texts(folder),
            code=folder.code,
            opening=setup.initial_message or "",
            database=setup.database_name,
            data=data,
            functions=functions,
            tools=tools,
            hooks=hooks,
            message_hooks=message_hooks,
            servers=self._servers(conversation, folder.root) if to_run else {},
            selector=self._selector(conversation, engines),
            model=setup.model,
            user_script=conversation.script.user,
            changed_code=changed,
            set_aside=set_aside,
            suppressed=leniency.suppressed(conversation) if set_aside else (),
            types=types,
            runtime=TalkRuntime,
            guards=guards,
            embedder=comparing(guards) if to_run else None,
            search=self._collections.search if self._collections else no_search,
            counter=counter_for(chosen.values()),
            modules=code.modules,
            lacking=tuple(unasked),
            unheeded=self._models.unheeded(staff.values()),
        )
        return loaded, problems

    def _selector(
        self, conversation: Conversation, engines: Mapping[str, Sequence[Engine]]
    ) -> Engine | None:
        """Engine that selects speakers: the script if it has lines for it, else that of the first
        agent."""
        if SELECTOR in conversation.script.agents:
            return scripted(conversation.script)
        first = conversation.orchestrator.initial_agent or next(iter(conversation.agents))
        return self._engines.common or next(iter(engines.get(first, ())), None)

    def _servers(self, conversation: Conversation, root: str) -> dict[str, TenantServer]:
        """Tool servers of a workflow. Raises at once if a connection cannot be created."""
        found: dict[str, TenantServer] = {}
        for server in conversation.toolkit.servers:
            key = root, server.model_dump_json()
            if key not in self._unused and key not in self._used:
                self._unused[key] = self._connect(server, root)
            found[server.name] = partial(self._server, server, root)
        return found

    def _server(self, server: DeclaredServer, root: str, tenant: str) -> ToolServer:
        """Connection to a tool server. Each tenant has its own, since a server may keep state and
        does not know tenants."""
        key = root, server.model_dump_json()
        connected = self._used.setdefault(key, {})
        if tenant not in connected:
            connected[tenant] = self._unused.pop(key, None) or self._connect(server, root)
        return connected[tenant]

    async def aclose(self) -> None:
        """Close the connections to tool servers."""
        for connected in (self._unused, *self._used.values()):
            while connected:
                await connected.popitem()[1].aclose()


def _staff(
    agent: Agent,
    engines: Mapping[str, tuple[Engine, ...]],
    chosen: Mapping[str, Any],
    components: Mapping[str, tuple[Component, ...]],
) -> AgentRuntime:
    """What an agent needs to take a turn."""
    own = engines.get(agent.name, ())
    return AgentRuntime(
        own,
        chosen.get(agent.name),
        own_contexts(own),
        components.get(agent.name, ()),
        most=agent.max_concurrency,
        labels=frozenset(agent.labels),
    )


def _identity(
    root: str, definition: str, set_aside: tuple[str, ...], code: Mapping[str, str]
) -> tuple[Any, ...]:
    """Cache key of a workflow: its folder, declarations and code."""
    return (root, definition, set_aside, *code.values())


def _without_data(problems: list[Diagnostic], folder: Folder) -> list[Diagnostic]:
    """Problems except those of files that are no part of the workflow, but read by variables."""
    declared = file_variables(folder.documents.get("context_variables"))
    data = {f"{folder.name}/{source.path}" for _, _, source in declared}
    return [each for each in problems if each.code != NO_PART or each.file not in data]


def _outcome(loaded: LoadedWorkflow) -> str:
    if loaded.set_aside:
        return "starts without its context variables, which are invalid"
    return "is valid, with warnings"
