"""Workflow folders as definitions of runs."""

import logging
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from anyio import to_thread

from weft.agents.spec import SELECTOR, Agent, Engine, Script, ToolServer
from weft.board.spec import TypeRegistry
from weft.conversation.logic import leniency
from weft.conversation.logic.checking import check
from weft.conversation.logic.guarding import declared_guards
from weft.conversation.logic.production import check_production
from weft.conversation.logic.rosters import Roster, declared_contexts, roster
from weft.conversation.logic.routing import Conversing
from weft.conversation.spec import Conversation
from weft.errors import DefinitionError, Diagnostic, WorkflowGone
from weft.kernel.documents import Folder
from weft.kernel.values import nearest
from weft.log.events import RunStarted
from weft.runtime.spec import Loaded, Staff
from weft.wiring.adapters import adapter
from weft.wiring.code import NO_CODE_FILE, Code, where_named
from weft.wiring.collections import comparing
from weft.wiring.contexts import Contexts
from weft.wiring.engines import ENGINES, Unanswered, function, scripted
from weft.wiring.servers import Connect
from weft.wiring.servers import connect as reach

log = logging.getLogger("weft.check")


class Folders:
    """Workflow folders as definitions; `engine` answers for agents that choose none.

    With `production`, what will not happen there is said as well. Unless `strict`, invalid context
    variables are set aside. `connect` reaches servers of tools in another way than by their
    protocol; `types` are those that the app knows.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        production: bool = False,
        strict: bool = True,
        connect: Connect | None = None,
        types: TypeRegistry | None = None,
    ) -> None:
        self._engine = engine
        self._types = types
        self._connect = connect or reach
        self._production = production
        self._strict = strict
        self._restored: dict[tuple[Any, ...], Loaded] = {}
        self._connected: dict[tuple[str, str], ToolServer] = {}

    async def load(self, source: str) -> Loaded:
        """The workflow declared in a folder, ready to run; what there is to say goes to the log."""
        loaded, problems = await to_thread.run_sync(self._examine, source, True)
        if loaded is None:
            raise DefinitionError(FilePath(source).name, problems)
        if problems:
            lines = "\n".join(f"  {problem}" for problem in problems)
            log.warning("Workflow %r %s:\n%s", loaded.workflow.name, _outcome(loaded), lines)
        return loaded

    async def restore(self, started: RunStarted) -> Loaded:
        """The workflow as a run began with it; its code is the code of today."""
        key = (started.root, started.definition, started.set_aside, *started.code.values())
        if key not in self._restored:
            self._restored[key] = await to_thread.run_sync(self._restore, started)
        return self._restored[key]

    def examine(self, source: str) -> tuple[Loaded | None, list[Diagnostic]]:
        """The workflow in a folder, if it is right, and everything there is to say about it.

        Who answers for agents that choose no engine is not asked: a deployment says that.
        """
        return self._examine(source, False)

    def _examine(self, source: str, to_run: bool) -> tuple[Loaded | None, list[Diagnostic]]:
        folder, problems = adapter("files").read_folder(source)
        loaded, found = self._make(folder, problems, to_run=to_run)
        if loaded is not None or self._strict or not leniency.is_invalid(found):
            return loaded, found
        aside = (leniency.OPTIONAL,)
        loaded, more = self._make(folder, problems, set_aside=aside, to_run=to_run)
        return loaded, [*found, *(problem for problem in more if problem not in found)]

    def _restore(self, started: RunStarted) -> Loaded:
        files = adapter("files")
        name = FilePath(started.root).name
        folder, problems = files.restore_folder(name, started.root, started.files, started.code)
        current, _ = files.read_folder(started.root)
        changed = tuple(
            file for file, digest in started.code.items() if current.code.get(file) != digest
        )
        loaded, problems = self._make(folder, problems, changed, started.set_aside)
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
        to_run: bool = True,
    ) -> tuple[Loaded | None, list[Diagnostic]]:
        unread = [each for each in problems if not (set_aside and leniency.is_about(each))]
        broken = frozenset(FilePath(problem.file).stem for problem in unread)
        conversation, found = check(folder, broken, frozenset(set_aside))
        code = Code(adapter("files").Modules(folder.root), folder, broken)
        engines, unasked = self._engines(code, roster(folder, broken), to_run)
        tools, hooks, message_hooks = code.tools(), code.hooks(), code.message_hooks()
        functions = {} if set_aside else code.derivations()
        guards = code.guards(declared_guards(folder, broken))
        contexts = Contexts(code, declared_contexts(folder, broken))
        chosen, types = contexts.chosen(), contexts.types(self._types)
        problems = [*problems, *found, *unasked]
        if conversation is None:
            return None, [*problems, *code.problems]
        if self._production:
            problems += check_production(folder, conversation)
        if unasked or code.problems:
            return None, [*problems, *code.problems]
        setup, script = conversation.orchestrator, conversation.script
        loaded = Loaded(
            Conversing(conversation),
            {agent: Staff((engine,), chosen.get(agent)) for agent, engine in engines.items()},
            folder.root,
            conversation.digest,
            adapter("files").texts(folder),
            folder.code,
            setup.initial_message or "",
            setup.database_name,
            functions,
            tools,
            hooks,
            message_hooks,
            self._servers(conversation, folder.root) if to_run else {},
            self._selector(conversation, engines),
            setup.model,
            script.user,
            changed,
            set_aside,
            leniency.suppressed(conversation) if set_aside else (),
            types=types,
            guards=guards,
            embedder=comparing(guards) if to_run else None,
            modules=code.modules,
        )
        return loaded, problems

    def _selector(self, conversation: Conversation, engines: Mapping[str, Engine]) -> Engine | None:
        """Who picks speakers: the script if it has lines for that, else whoever starts."""
        if SELECTOR in conversation.script.agents:
            return scripted(None, conversation.script)
        first = conversation.orchestrator.initial_agent or next(iter(conversation.agents))
        return self._engine or engines.get(first)

    def _servers(self, conversation: Conversation, root: str) -> dict[str, ToolServer]:
        """The servers of tools of a workflow; the runs of an app share them."""
        found: dict[str, ToolServer] = {}
        for server in conversation.toolkit.servers:
            key = (root, server.model_dump_json())
            if key not in self._connected:
                self._connected[key] = self._connect(server, root)
            found[server.name] = self._connected[key]
        return found

    async def aclose(self) -> None:
        """Part from the servers of tools."""
        while self._connected:
            await self._connected.popitem()[1].aclose()

    def _is_left(self, agent: Agent, script: Script | None) -> bool:
        """Whether an agent chooses no engine, and nobody here answers for it."""
        scripted = script is None or agent.name in script.agents
        return agent.engine is None and self._engine is None and not scripted

    def _engines(
        self, code: "Code", known: Roster, to_run: bool
    ) -> tuple[dict[str, Engine], list[Diagnostic]]:
        found: dict[str, Engine] = {}
        problems: list[Diagnostic] = []
        for agent in known.agents.values():
            if not to_run and self._is_left(agent, known.script):
                continue
            place = known.places[agent.name]
            try:
                engine = self._engine_of(agent, code.modules, known.script)
            except DefinitionError as error:
                problems += [where_named(problem, *place) for problem in error.diagnostics]
            except Unanswered as error:
                problems.append(Diagnostic(*place, "W050", error.message, error.remedy))
            else:
                found |= {agent.name: engine} if engine else {}
        return found, problems

    def _engine_of(self, agent: Agent, modules: Any, script: Script | None) -> Engine | None:
        """The engine of an agent; none when the script that may have it cannot be read."""
        choice = agent.engine
        if choice is None and self._engine is not None:
            return self._engine
        if self._is_left(agent, script):
            raise Unanswered(
                f"Agent {agent.name!r} has no engine.",
                "Name one with `engine`, write its lines into script.yaml, or pass "
                "`Weft(engine=…)` in Python.",
            )
        match choice.type if choice else "scripted":
            case "scripted":
                return scripted(choice, script)
            case "functions":
                return function(choice, modules)
            case other:
                hint = nearest(other, ENGINES)
                remedy = f"Did you mean {hint!r}?" if hint else f"There is: {', '.join(ENGINES)}."
                raise Unanswered(f"Engine {other!r} does not exist.", remedy)


def _outcome(loaded: Loaded) -> str:
    if loaded.set_aside:
        return "begins without its context variables, which do not pass their check"
    return "passes its check, with warnings"
