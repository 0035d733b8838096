"""Workflow folders as definitions of runs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path as FilePath
from typing import Any

from anyio import to_thread

from turnloom.agents.spec import SELECTOR, DeclaredServer, Engine, ToolServer
from turnloom.assembly.spec.means import no_search
from turnloom.board.spec import TypeRegistry
from turnloom.conversation.logic import checking as leniency
from turnloom.conversation.logic.checking import check_production, declared_guards
from turnloom.conversation.logic.rosters import declared_contexts, roster
from turnloom.conversation.logic.routing import ConversationForm
from turnloom.conversation.service import CheckedFolders
from turnloom.conversation.spec import Conversation
from turnloom.errors import DefinitionError, Diagnostic, WorkflowGone
from turnloom.kernel.documents import Folder
from turnloom.kernel.threads import LOADING, threads
from turnloom.log.events import RunStarted
from turnloom.runtime.conversation import TalkRuntime
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow, TenantServer
from turnloom.wiring.adapters import adapter
from turnloom.wiring.code import NO_CODE_FILE, Code
from turnloom.wiring.collections import Collections, comparing, counter_for
from turnloom.wiring.contexts import FolderContexts, Registered
from turnloom.wiring.engines import UNNAMED, Depth, Engines, scripted
from turnloom.wiring.models import ModelEngines, own_contexts
from turnloom.wiring.servers import Connect
from turnloom.wiring.servers import connect as reach

log = logging.getLogger("turnloom.check")

# Called with a file before its code runs; may refuse it by a `DefinitionError`.
Loading = Callable[[str], None]

# How many files are remembered as they were parsed.
PARSED = 256


class Folders:
    """Workflow folders as definitions; `engine` answers for agents that choose none.

    With `production`, what will not happen there is said as well. Unless `strict`, invalid context
    variables are set aside. `connect` reaches servers of tools in another way than by their
    protocol; `types` and `collections` are those that the app knows, `models` what asks models for
    it.
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
        # Files are read each time, and code runs afresh for each load; texts are parsed once.
        self._parse: Any = lru_cache(PARSED)(adapter("files").parse)
        self._checked = CheckedFolders()
        self._restored: dict[tuple[Any, ...], LoadedWorkflow] = {}
        # Connections to servers of tools: those of tenants, and one that no tenant has yet.
        self._used: dict[tuple[str, str], dict[str, ToolServer]] = {}
        self._unused: dict[tuple[str, str], ToolServer] = {}

    async def load(self, source: str) -> LoadedWorkflow:
        """The workflow declared in a folder, ready to run; what there is to say goes to the log."""
        loaded, problems = await to_thread.run_sync(
            self._examine, source, "run", limiter=threads(LOADING)
        )
        if loaded is None:
            raise DefinitionError(FilePath(source).name, problems)
        if problems:
            lines = "\n".join(f"  {problem}" for problem in problems)
            log.warning("Workflow %r %s:\n%s", loaded.workflow.name, _outcome(loaded), lines)
        # The runs that begin with it need it soon, and share its modules.
        self._restored.setdefault(
            _identity(loaded.root, loaded.definition, loaded.set_aside, loaded.code), loaded
        )
        return loaded

    async def restore(self, started: RunStarted) -> LoadedWorkflow:
        """The workflow as a run began with it; its code is the code of today."""
        key = _identity(started.root, started.definition, started.set_aside, started.code)
        if key not in self._restored:
            self._restored[key] = await to_thread.run_sync(
                self._restore, started, "run", limiter=threads(LOADING)
            )
        return self._restored[key]

    def recall(self, started: RunStarted) -> LoadedWorkflow:
        """The workflow as a run began with it, to be looked at: who answers is not asked."""
        return self._restore(started, "folder")

    def examine(
        self, source: str, loading: Loading | None = None
    ) -> tuple[LoadedWorkflow | None, list[Diagnostic]]:
        """The workflow in a folder, if it is right, and everything there is to say about it.

        Who answers for agents that choose no engine is not asked: a deployment says that. `loading`
        is called with each file before its code runs.
        """
        return self._examine(source, "folder", loading)

    def examine_here(self, source: str, loading: Loading | None = None) -> list[Diagnostic]:
        """Everything there is to say about the workflow in a folder and, once that is right,
        whether something answers for each agent by the settings; not whether models can be
        reached."""
        _, found = self._examine(source, "settings", loading)
        own = [problem for problem in found if problem.remedy != UNNAMED]
        return own if any(problem.severity == "error" for problem in own) else found

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
                f"The workflow folder of this run is gone: it was {started.root!r}, and its code "
                "is needed. Put it back there to go on with the run."
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
        to_run = depth == "run"
        unread = [each for each in problems if not (set_aside and leniency.is_about(each))]
        broken = frozenset(FilePath(problem.file).stem for problem in unread)
        conversation, found = self._checked.check(folder, broken, frozenset(set_aside))
        code = Code(adapter("files").Modules(folder.root, loading), folder, broken)
        engines, unasked = self._engines.choose(code, roster(folder, broken), depth)
        tools, hooks, message_hooks = code.tools(), code.hooks(), code.message_hooks()
        components = code.components()
        functions = {} if set_aside else code.derivations()
        guards = code.guards(declared_guards(folder, broken))
        registered = Registered(self._collections, to_run)
        contexts = FolderContexts(code, declared_contexts(folder, broken), registered)
        chosen, types = contexts.chosen(), contexts.types(self._types)
        # What a source could not be made of may have been said of its declaration already.
        problems = [*dict.fromkeys([*problems, *found, *unasked, *code.problems])]
        if conversation is None:
            return None, problems
        if self._production:
            problems += check_production(folder, conversation)
        if (unasked and not is_begun) or not code.is_sound:
            return None, problems
        if to_run and self._collections:
            self._collections.open_named(chosen.values())
        setup, script = conversation.orchestrator, conversation.script
        staff = {
            name: AgentRuntime(
                engines.get(name, ()),
                chosen.get(name),
                own_contexts(engines.get(name, ())),
                components.get(name, ()),
                most=agent.max_concurrency,
                labels=frozenset(agent.labels),
            )
            for name, agent in conversation.agents.items()
        }
        loaded = LoadedWorkflow(
            ConversationForm(conversation),
            staff,
            folder.root,
            conversation.digest,
            files=adapter("files").texts(folder),
            code=folder.code,
            opening=setup.initial_message or "",
            database=setup.database_name,
            functions=functions,
            tools=tools,
            hooks=hooks,
            message_hooks=message_hooks,
            servers=self._servers(conversation, folder.root) if to_run else {},
            selector=self._selector(conversation, engines),
            model=setup.model,
            user_script=script.user,
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
        """Who picks speakers: the script if it has lines for that, else whoever starts."""
        if SELECTOR in conversation.script.agents:
            return scripted(conversation.script)
        first = conversation.orchestrator.initial_agent or next(iter(conversation.agents))
        return self._engines.common or next(iter(engines.get(first, ())), None)

    def _servers(self, conversation: Conversation, root: str) -> dict[str, TenantServer]:
        """The servers of tools of a workflow; what keeps one from being reached at all is told."""
        found: dict[str, TenantServer] = {}
        for server in conversation.toolkit.servers:
            key = root, server.model_dump_json()
            if key not in self._unused and key not in self._used:
                self._unused[key] = self._connect(server, root)
            found[server.name] = partial(self._server, server, root)
        return found

    def _server(self, server: DeclaredServer, root: str, tenant: str) -> ToolServer:
        """The connection of a tenant to a server of tools, which the runs of the tenant share: a
        program may keep things, and is told nothing of tenants."""
        key = root, server.model_dump_json()
        connected = self._used.setdefault(key, {})
        if tenant not in connected:
            connected[tenant] = self._unused.pop(key, None) or self._connect(server, root)
        return connected[tenant]

    async def aclose(self) -> None:
        """Part from the servers of tools."""
        for connected in (self._unused, *self._used.values()):
            while connected:
                await connected.popitem()[1].aclose()


def _identity(
    root: str, definition: str, set_aside: tuple[str, ...], code: Mapping[str, str]
) -> tuple[Any, ...]:
    """What workflows have in common that behave alike: where they are, what they declare and what
    their code is."""
    return (root, definition, set_aside, *code.values())


def _outcome(loaded: LoadedWorkflow) -> str:
    if loaded.set_aside:
        return "begins without its context variables, which do not pass their check"
    return "passes its check, with warnings"
