"""Which adapter stands behind which port; settings. Adapters are imported when they are used."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from anyio import to_thread

from weft.agents.spec import Agent, Engine, EngineChoice
from weft.conversation.logic.checking import check
from weft.conversation.logic.routing import Conversing
from weft.conversation.spec import Conversation
from weft.errors import DefinitionError, Diagnostic, UsageError
from weft.kernel.documents import Folder
from weft.kernel.values import nearest
from weft.log.events import RunStarted
from weft.runtime.logic import codec
from weft.runtime.service.driver import Stores
from weft.runtime.service.runs import World
from weft.runtime.spec import Loaded

DEFAULT_STORE = ".weft/weft.db"
ENGINES = ("scripted", "functions")


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept (`memory` or a file), and how many are driven at once."""

    store: str = DEFAULT_STORE
    slots: int = 1000


def settings(store: str | None, slots: int | None) -> Settings:
    """What was asked for, else `WEFT_*` of the environment, else `weft.toml`, else the defaults.

    Raises:
        UsageError: a setting does not exist or is not of its type.
    """
    found: dict[str, Any] = _from_file() | _from_environment()
    found |= {"store": store} if store is not None else {}
    found |= {"slots": slots} if slots is not None else {}
    for name, value in found.items():
        _check_setting(name, value)
    return Settings(**found)


def _check_setting(name: str, value: Any) -> None:
    kinds = {"store": str, "slots": int}
    if name not in kinds:
        hint = nearest(name, tuple(kinds))
        remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(kinds)}."
        raise UsageError(f"There is no setting {name!r}. {remedy}")
    if not isinstance(value, kinds[name]) or value in ("", 0):
        raise UsageError(f"Setting {name!r} is {value!r}; it takes a {kinds[name].__name__}.")


def _from_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    if store := os.environ.get("WEFT_STORE"):
        found["store"] = store
    if slots := os.environ.get("WEFT_SLOTS"):
        found["slots"] = int(slots) if slots.isdecimal() else slots
    return found


def _from_file() -> dict[str, Any]:
    path = Path("weft.toml")
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


def world(store: Any, definitions: "Folders") -> World:
    """The world of an app: its store, the system's clock and chance, tasks of this process."""
    system = _adapter("system")
    clock = system.SystemClock()
    return World(
        Stores(store.log, store.inbox, store.claims, store.snapshots),
        clock,
        system.SystemEntropy(),
        system.SystemEnvironment(),
        definitions,
        _adapter("inline").InlineScheduler(clock),
    )


class Folders:
    """Workflow folders as definitions; `engine` answers for agents that choose none."""

    def __init__(self, engine: Engine | None = None) -> None:
        self._engine = engine
        self._restored: dict[tuple[str, ...], Loaded] = {}

    async def load(self, source: str) -> Loaded:
        """The workflow declared in a folder."""
        loaded, problems = await to_thread.run_sync(self.examine, source)
        if loaded is None:
            raise DefinitionError(Path(source).name, problems)
        return loaded

    async def restore(self, started: RunStarted) -> Loaded:
        """The workflow as a run began with it; its code is the code of today."""
        key = (started.root, started.definition, *started.code.values())
        if key not in self._restored:
            self._restored[key] = await to_thread.run_sync(self._restore, started)
        return self._restored[key]

    def examine(self, source: str) -> tuple[Loaded | None, list[Diagnostic]]:
        """The workflow in a folder, if it can run, and everything there is to say about it."""
        folder, problems = _adapter("files").read_folder(source)
        return self._make(folder, problems, ())

    def _restore(self, started: RunStarted) -> Loaded:
        files = _adapter("files")
        name = Path(started.root).name
        folder, problems = files.restore_folder(name, started.root, started.files, started.code)
        current, _ = files.read_folder(started.root)
        changed = tuple(
            file for file, digest in started.code.items() if current.code.get(file) != digest
        )
        loaded, problems = self._make(folder, problems, changed)
        if loaded is None:
            raise DefinitionError(name, problems)
        return loaded

    def _make(
        self, folder: Folder, problems: list[Diagnostic], changed: tuple[str, ...]
    ) -> tuple[Loaded | None, list[Diagnostic]]:
        broken = frozenset(Path(problem.file).stem for problem in problems)
        conversation, found = check(folder, broken)
        problems = [*problems, *found]
        if conversation is None:
            return None, problems
        engines, found = self._engines(folder, conversation)
        if found:
            return None, [*problems, *found]
        loaded = Loaded(
            Conversing(conversation),
            engines,
            folder.root,
            conversation.digest,
            _adapter("files").texts(folder),
            folder.code,
            conversation.orchestrator.initial_message or "",
            conversation.script.user,
            changed,
        )
        return loaded, problems

    def _engines(
        self, folder: Folder, conversation: Conversation
    ) -> tuple[dict[str, Engine], list[Diagnostic]]:
        found: dict[str, Engine] = {}
        problems: list[Diagnostic] = []
        makers = _makers(folder, conversation)
        for agent in conversation.agents.values():
            place = conversation.places[agent.name]
            try:
                found[agent.name] = self._engine_of(agent, conversation, makers)
            except DefinitionError as error:
                problems += [_where_named(problem, *place) for problem in error.diagnostics]
            except UsageError as error:
                problems.append(Diagnostic(*place, "W050", str(error)))
        return found, problems

    def _engine_of(
        self,
        agent: Agent,
        conversation: Conversation,
        makers: Mapping[str, Callable[[EngineChoice], Engine]],
    ) -> Engine:
        choice = agent.engine
        if choice is None:
            if self._engine is not None:
                return self._engine
            if agent.name not in conversation.script.agents:
                raise UsageError(
                    f"Agent {agent.name!r} has no engine. Name one with `engine`, or write its "
                    "lines into script.yaml."
                )
            choice = "scripted"
        if isinstance(choice, str):
            choice = EngineChoice(type=choice)
        if choice.type not in makers:
            hint = nearest(choice.type, ENGINES)
            remedy = f"Did you mean {hint!r}?" if hint else f"There is: {', '.join(ENGINES)}."
            raise UsageError(f"Engine {choice.type!r} does not exist. {remedy}")
        return makers[choice.type](choice)


def _makers(
    folder: Folder, conversation: Conversation
) -> dict[str, Callable[[EngineChoice], Engine]]:
    modules = _adapter("files").Modules(folder.root)

    def scripted(choice: EngineChoice) -> Engine:
        if choice.file or choice.function:
            raise UsageError("The scripted engine reads script.yaml; it takes no file or function.")
        return _adapter("scripted").ScriptedEngine(conversation.script.agents)

    def functions(choice: EngineChoice) -> Engine:
        if not (choice.file and choice.function):
            raise UsageError("The functions engine needs `file` and `function`.")
        return _adapter("functions").FunctionEngine(modules.function(choice.file, choice.function))

    return {"scripted": scripted, "functions": functions}


def _where_named(problem: Diagnostic, file: str, line: int) -> Diagnostic:
    """A problem with a name of code, at the place that names it; one inside the code stays."""
    inside = problem.file.endswith(".py")
    return problem if inside else replace(problem, file=file, line=line)
