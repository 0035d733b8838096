"""Which adapter stands behind which port; settings. Adapters are imported when they are used."""

import logging
import os
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from anyio import to_thread

from weft.agents.spec import (
    SELECTOR,
    Agent,
    Answer,
    Callee,
    Engine,
    EngineChoice,
    Line,
    Script,
    Server,
    ToolCall,
    ToolServer,
    Usage,
)
from weft.conversation.logic import leniency
from weft.conversation.logic.checking import (
    Roster,
    check,
    declared_hooks,
    declared_message_hooks,
    declared_tools,
    roster,
)
from weft.conversation.logic.production import check_production
from weft.conversation.logic.routing import Conversing
from weft.conversation.spec import Conversation
from weft.errors import DefinitionError, Diagnostic, UsageError
from weft.kernel.documents import Document, Folder, Path
from weft.kernel.values import Json, nearest
from weft.log.events import RunStarted
from weft.runtime.logic import codec
from weft.runtime.service.driver import Stores
from weft.runtime.service.runs import Runs, World
from weft.runtime.spec import Loaded
from weft.variables.logic.descriptions import describe
from weft.variables.logic.types import FALSE, TRUE
from weft.variables.ports import DocumentStore

DEFAULT_STORE = ".weft/weft.db"
DEFAULT_DOCUMENTS = "sqlite:.weft/documents"
ENGINES = ("scripted", "functions")

log = logging.getLogger("weft.check")


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept (`memory` or a file), how many are driven at once, where the documents of
    database variables are found (a URL, and the seconds to wait for an answer), and whether invalid
    context variables keep a run from starting."""

    store: str = DEFAULT_STORE
    slots: int = 1000
    documents: str = DEFAULT_DOCUMENTS
    documents_timeout: float = 5.0
    strict: bool = True


_KINDS: dict[str, type] = {each.name: type(each.default) for each in fields(Settings)}
_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number above 0",
    float: "seconds above 0",
    bool: "true or false",
}
_SWITCH = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE - {""}, False)}


def settings(asked: Mapping[str, Any]) -> Settings:
    """What was asked for, else `WEFT_*` of the environment, else `weft.toml`, else the defaults.

    Raises:
        UsageError: a setting does not exist or is not of its type.
    """
    return Settings(**{name: chosen.value for name, chosen in in_force(asked).items()})


class Chosen(NamedTuple):
    """The value of a setting, and where it came from."""

    value: Any
    origin: str


def in_force(asked: Mapping[str, Any]) -> dict[str, Chosen]:
    """Every setting by name.

    Raises:
        UsageError: a setting does not exist or is not of its type.
    """
    layers = {
        "default": asdict(Settings()),
        "weft.toml": _from_file(),
        "environment": _from_environment(),
        "argument": {name: value for name, value in asked.items() if value is not None},
    }
    found = {
        name: Chosen(value, origin)
        for origin, values in layers.items()
        for name, value in values.items()
    }
    return {name: each._replace(value=_setting(name, each.value)) for name, each in found.items()}


def _setting(name: str, value: Any) -> Any:
    kind = _KINDS.get(name)
    if kind is None:
        hint = nearest(name, tuple(_KINDS))
        remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(_KINDS)}."
        raise UsageError(f"There is no setting {name!r}. {remedy}")
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or not _is_allowed(value):
        raise UsageError(f"Setting {name!r} is {value!r}; it takes {_WORDS[kind]}.")
    return value


def _is_allowed(value: str | float) -> bool:
    """Whether a text is not empty and a number is above 0; true and false are both fine."""
    return value != "" if isinstance(value, str) else isinstance(value, bool) or value > 0


def _from_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in _KINDS.items():
        text = os.environ.get(f"WEFT_{name.upper()}")
        if text:
            found[name] = _read(kind, text)
    return found


def _read(kind: type, text: str) -> Any:
    """What an environment variable holds, or the text itself for the error to show."""
    if kind is str:
        return text
    if kind is bool:
        return _SWITCH.get(text.strip().lower(), text)
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _from_file() -> dict[str, Any]:
    path = FilePath("weft.toml")
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"weft.toml cannot be read: {error}") from error


def _adapter(name: str) -> Any:
    return import_module(f"weft.adapters.{name}")


def open_store(chosen: Settings) -> Any:
    """The store that the settings name; it opens nothing before it is used."""
    if chosen.store == "memory":
        return _adapter("memory").MemoryStore(codec())
    return _adapter("sqlite").SqliteStore(chosen.store, codec())


def open_documents(chosen: Settings) -> DocumentStore:
    """The document store that the settings name; it connects to nothing before it is used.

    Raises:
        UsageError: no store has such a URL.
    """
    url, timeout = chosen.documents, chosen.documents_timeout
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return _adapter("sqlite.documents").SqliteDocuments(url.removeprefix("sqlite:"), timeout)
    if scheme in ("postgresql", "postgres"):
        return _adapter("postgres").PostgresDocuments(url, timeout)
    if scheme in ("mongodb", "mongodb+srv"):
        return _adapter("mongo").MongoDocuments(url, timeout)
    raise UsageError(
        f"No document store is reached by {scheme!r}. Write `sqlite:FOLDER`, `postgresql://…` or "
        "`mongodb://…`."
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """What an app consists of."""

    settings: Settings
    store: Any
    documents: DocumentStore
    definitions: "Folders"
    runs: Runs

    async def aclose(self) -> None:
        """Close the stores."""
        await self.definitions.aclose()
        await self.store.aclose()
        await self.documents.aclose()


def assemble(asked: Mapping[str, Any], engine: Engine | None) -> Parts:
    """The parts of an app as it was asked for; nothing is opened yet."""
    chosen = settings(asked)
    store, documents = open_store(chosen), open_documents(chosen)
    definitions = Folders(engine, strict=chosen.strict)
    runs = Runs(world(store, documents, definitions))
    return Parts(chosen, store, documents, definitions, runs)


def world(store: Any, documents: DocumentStore, definitions: "Folders") -> World:
    """The world of an app: its stores, the system's clock and chance, tasks of this process."""
    system = _adapter("system")
    clock = system.SystemClock()
    return World(
        Stores(store.log, store.inbox, store.claims, store.snapshots),
        clock,
        system.SystemEntropy(),
        system.SystemEnvironment(),
        documents,
        definitions,
        _adapter("inline").InlineScheduler(clock),
    )


def read_part(path: str, part: str) -> tuple[Document | None, list[Diagnostic]]:
    """One part of a workflow, from its folder or from its own file, and the problems of reading.

    Raises:
        UsageError: nothing is there, or two files declare the part.
    """
    return _adapter("files").read_part(path, part)


async def descriptions(started: RunStarted) -> Mapping[str, str]:
    """What each variable of a run is for, by the declarations that the run began with."""
    restore = _adapter("files").restore_folder
    folder, _ = await to_thread.run_sync(
        restore, started.workflow, started.root, started.files, started.code
    )
    document = folder.documents.get("context_variables")
    return {} if document is None else describe(document)


def write_back(path: str, value: Json) -> str:
    """Write a file again in its own format, and give the path of a copy of the former one.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    return _adapter("files").write_back(path, value)


# Makes what reaches a server of tools that a workflow in a folder declares.
Connect = Callable[[Server, str], ToolServer]


class Folders:
    """Workflow folders as definitions; `engine` answers for agents that choose none.

    With `production`, what will not happen there is said as well. Unless `strict`, invalid context
    variables are set aside. `connect` reaches servers of tools in another way than by their
    protocol.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        production: bool = False,
        strict: bool = True,
        connect: Connect | None = None,
    ) -> None:
        self._engine = engine
        self._connect = connect or _connect
        self._production = production
        self._strict = strict
        self._restored: dict[tuple[Any, ...], Loaded] = {}
        self._connected: dict[tuple[str, str], ToolServer] = {}

    async def load(self, source: str) -> Loaded:
        """The workflow declared in a folder; what there is to say about it goes to the log."""
        loaded, problems = await to_thread.run_sync(self.examine, source)
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
        """The workflow in a folder, if it can run, and everything there is to say about it."""
        folder, problems = _adapter("files").read_folder(source)
        loaded, found = self._make(folder, problems)
        if loaded is not None or self._strict or not leniency.is_invalid(found):
            return loaded, found
        loaded, more = self._make(folder, problems, set_aside=(leniency.OPTIONAL,))
        return loaded, [*found, *(problem for problem in more if problem not in found)]

    def _restore(self, started: RunStarted) -> Loaded:
        files = _adapter("files")
        name = FilePath(started.root).name
        folder, problems = files.restore_folder(name, started.root, started.files, started.code)
        current, _ = files.read_folder(started.root)
        changed = tuple(
            file for file, digest in started.code.items() if current.code.get(file) != digest
        )
        loaded, problems = self._make(folder, problems, changed, started.set_aside)
        if loaded is None:
            raise DefinitionError(name, problems)
        return loaded

    def _make(
        self,
        folder: Folder,
        problems: list[Diagnostic],
        changed: tuple[str, ...] = (),
        set_aside: tuple[str, ...] = (),
    ) -> tuple[Loaded | None, list[Diagnostic]]:
        unread = [each for each in problems if not (set_aside and leniency.is_about(each))]
        broken = frozenset(FilePath(problem.file).stem for problem in unread)
        conversation, found = check(folder, broken, frozenset(set_aside))
        code = Code(_adapter("files").Modules(folder.root), folder, broken)
        engines, unasked = self._engines(code, roster(folder, broken))
        tools, hooks, message_hooks = code.tools(), code.hooks(), code.message_hooks()
        problems = [*problems, *found, *unasked]
        if conversation is None:
            return None, [*problems, *code.problems]
        if self._production:
            problems += check_production(folder, conversation)
        functions = code.derivations(conversation)
        if unasked or code.problems:
            return None, [*problems, *code.problems]
        setup, script = conversation.orchestrator, conversation.script
        loaded = Loaded(
            Conversing(conversation),
            engines,
            folder.root,
            conversation.digest,
            _adapter("files").texts(folder),
            folder.code,
            setup.initial_message or "",
            setup.database_name,
            functions,
            tools,
            hooks,
            message_hooks,
            self._servers(conversation, folder.root),
            self._selector(conversation, engines),
            setup.model,
            script.user,
            changed,
            set_aside,
            leniency.suppressed(conversation) if set_aside else (),
        )
        return loaded, problems

    def _selector(self, conversation: Conversation, engines: Mapping[str, Engine]) -> Engine | None:
        """Who picks speakers: the script if it has lines for that, else whoever starts."""
        if SELECTOR in conversation.script.agents:
            return _scripted(None, conversation.script)
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

    def _engines(self, code: "Code", known: Roster) -> tuple[dict[str, Engine], list[Diagnostic]]:
        found: dict[str, Engine] = {}
        problems: list[Diagnostic] = []
        for agent in known.agents.values():
            place = known.places[agent.name]
            try:
                engine = self._engine_of(agent, code.modules, known.script)
            except DefinitionError as error:
                problems += [_where_named(problem, *place) for problem in error.diagnostics]
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
        if choice is None and script is not None and agent.name not in script.agents:
            raise Unanswered(
                f"Agent {agent.name!r} has no engine.",
                "Name one with `engine`, write its lines into script.yaml, or pass "
                "`Weft(engine=…)` in Python.",
            )
        match choice.type if choice else "scripted":
            case "scripted":
                return _scripted(choice, script)
            case "functions":
                return _function(choice, modules)
            case other:
                hint = nearest(other, ENGINES)
                remedy = f"Did you mean {hint!r}?" if hint else f"There is: {', '.join(ENGINES)}."
                raise Unanswered(f"Engine {other!r} does not exist.", remedy)


def _outcome(loaded: Loaded) -> str:
    if loaded.set_aside:
        return "begins without its context variables, which do not pass their check"
    return "passes its check, with warnings"


class Unanswered(Exception):
    """An agent that nothing makes answer."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def _scripted(choice: EngineChoice | None, script: Script | None) -> Engine | None:
    if choice is not None and (choice.file or choice.function):
        message = "The scripted engine reads script.yaml; it takes no file or function."
        raise Unanswered(message, "Drop them, or choose the functions engine.")
    if script is None:
        return None
    lines = {agent: [_answer(line) for line in lines] for agent, lines in script.agents.items()}
    return _adapter("scripted").ScriptedEngine(lines)


def _answer(line: Line) -> Answer:
    calls = tuple(ToolCall(call.tool, call.arguments) for call in line.calls)
    return Answer(line.text, Usage(), calls, line.output)


def _connect(server: Server, root: str) -> ToolServer:
    """The server that is declared; it is started in the folder, or reached, when first used."""
    environment = _adapter("system").SystemEnvironment()

    def values(names: Mapping[str, str]) -> dict[str, str]:
        return {key: environment.get(name) or "" for key, name in names.items()}

    return _adapter("mcp").McpServer(
        server.name,
        command=server.command or None,
        env=values(server.env),
        cwd=root,
        url=server.url,
        headers=values(server.headers),
        timeout=server.timeout_s,
    )


def _function(choice: EngineChoice | None, modules: Any) -> Engine:
    if choice is None or not (choice.file and choice.function):
        message = "The functions engine needs `file` and `function`."
        raise Unanswered(message, "Say which function of which file answers.")
    return _adapter("functions").FunctionEngine(modules.function(choice.file, choice.function))


class Code:
    """The functions that a workflow names, from its code; what cannot be had is a problem."""

    def __init__(self, modules: Any, folder: Folder, broken: frozenset[str]) -> None:
        self.modules = modules
        self.problems: list[Diagnostic] = []
        self._folder = folder
        self._broken = broken

    def tools(self) -> dict[str, Callee]:
        """The tools by name."""
        found: dict[str, Callee] = {}
        for place, tool in declared_tools(self._folder, self._broken):
            function = self._function(tool.file, tool.function, place)
            callee = function and self._callee(function, tool.title, tool.description, place)
            if callee is not None:
                found[tool.title] = callee
        return found

    def hooks(self) -> dict[int, Callee]:
        """The hooks by their place."""
        found: dict[int, Callee] = {}
        for number, (place, hook) in enumerate(declared_hooks(self._folder, self._broken)):
            function = self._function(hook.file, hook.function, place)
            callee = function and self._callee(function, hook.title, hook.description, place)
            if callee is not None:
                found[number] = self._unasked(callee, hook.title, place)
        return found

    def message_hooks(self) -> dict[int, Callable[..., Awaitable[Any]]]:
        """The message hooks by their place."""
        found: dict[int, Callable[..., Awaitable[Any]]] = {}
        declared = declared_message_hooks(self._folder, self._broken)
        for number, (place, hook) in enumerate(declared):
            function = self._function(hook.filename, hook.function, place)
            if function is not None:
                found[number] = _adapter("functions").detached(function)
        return found

    def derivations(self, conversation: Conversation) -> dict[str, Callable[..., Any]]:
        """The functions that derive variables, from the workflow's `derivations.py`."""
        found: dict[str, Callable[..., Any]] = {}
        for rule in conversation.triggers.functions:
            name: str = getattr(rule.trigger, "function", "")
            document = self._folder.documents["context_variables"]
            place = (document.file, _line_of(document, "function", name))
            function = self._function("derivations.py", name, place)
            if function is None:
                continue
            if not getattr(function, "is_derivation", False):
                message = f"Function {name!r} of derivations.py is not registered."
                remedy = "Put `@derivation` above it."
                self.problems.append(Diagnostic(*place, "W044", message, remedy))
            found[name] = function
        return found

    def _function(self, file: str, name: str, place: tuple[str, int]) -> Callable[..., Any] | None:
        try:
            return self.modules.function(file, name)
        except DefinitionError as error:
            named = [_where_named(problem, *place) for problem in error.diagnostics]
            self.problems += [problem for problem in named if problem not in self.problems]
            return None

    def _callee(
        self, function: Callable[..., Any], name: str, description: str, place: tuple[str, int]
    ) -> Callee | None:
        try:
            return _adapter("functions").FunctionCallee(function, name, description)
        except TypeError as error:
            message = f"Function {name!r} cannot be called with JSON: {error}."
            remedy = "Give its parameters types that JSON can have."
            self.problems.append(Diagnostic(*place, "W049", message, remedy))
            return None

    def _unasked(self, callee: Callee, name: str, place: tuple[str, int]) -> Callee:
        """Note a hook that wants arguments: nobody gives it any."""
        wanted = ", ".join(callee.schema.parameters.get("required", ()))
        if wanted:
            message = f"Hook {name!r} wants {wanted}; hooks are given the context alone."
            remedy = "Take `context_variables`, or nothing."
            self.problems.append(Diagnostic(*place, "W049", message, remedy))
        return callee


def _line_of(document: Document, key: str, value: str) -> int:
    """The line that says `key: value`."""
    for path, place in document.places.items():
        if path and path[-1] == key and _at(document.value, path) == value:
            return place.line
    return 1


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _where_named(problem: Diagnostic, file: str, line: int) -> Diagnostic:
    """A problem with a name of code, at the place that names it; one inside the code stays."""
    inside = problem.file.endswith(".py")
    return problem if inside else replace(problem, file=file, line=line)
