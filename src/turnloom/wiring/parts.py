"""What an app consists of: stores, definitions, runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Protocol

from anyio import to_thread

from turnloom.agents.spec import Engine
from turnloom.board.service import bind
from turnloom.board.spec import BoardHandle, Reader, TypeRegistry
from turnloom.conversation.logic.deciding import deciding
from turnloom.errors import Diagnostic, UsageError, WorkflowGone
from turnloom.explain.spec.explanations import Declared
from turnloom.flow.logic.flowing import Flowing
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Guards
from turnloom.kernel.documents import Document
from turnloom.kernel.values import Json
from turnloom.log.events import RunStarted
from turnloom.log.ports import Clock
from turnloom.reaction.logic.reacting import Reacting
from turnloom.runs.undriven import CHAT
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import Artifacts, Entropy, Plans, Scheduler, Store
from turnloom.runtime.service.driver import Stores
from turnloom.runtime.service.pinning import plan_of
from turnloom.runtime.service.runs import Runs, World
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.descriptions import describe
from turnloom.variables.ports import DocumentStore, Environment
from turnloom.wiring.adapters import adapter
from turnloom.wiring.boards import BoardDeclaration, Boards
from turnloom.wiring.collections import Collections
from turnloom.wiring.flows import Flows
from turnloom.wiring.folders import Folders
from turnloom.wiring.models import Models
from turnloom.wiring.servers import Connect
from turnloom.wiring.settings import Settings, settings

# What a board may be called: it is part of the ids of its runs.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def open_store(chosen: Settings) -> Any:
    """The store that the settings name; it opens nothing before it is used."""
    beside = not chosen.artifacts
    if chosen.store == "memory":
        return adapter("memory").MemoryStore(codec(), board=beside)
    return adapter("sqlite").SqliteStore(chosen.store, codec(), board=beside)


def open_artifacts(chosen: Settings, store: Any) -> Artifacts:
    """The artifacts that the settings name: those of the store, or of a server of their own; it is
    connected to when they are used.

    Raises:
        UsageError: no store has such a URL.
    """
    if not chosen.artifacts:
        return store.artifacts
    scheme = chosen.artifacts.partition(":")[0]
    if scheme in ("postgresql", "postgres"):
        return adapter("postgres").PostgresArtifacts(chosen.artifacts)
    raise UsageError(
        f"No artifacts are reached by {scheme!r}. Write `postgresql://…`, or leave the setting "
        "`artifacts` empty to keep them beside the runs."
    )


def open_beliefs(chosen: Settings, store: Any) -> BeliefStore:
    """What is known of agents, where the settings say: beside the runs, or on a server of its own;
    it is connected to when it is used.

    Raises:
        UsageError: no store has such a URL.
    """
    if not chosen.beliefs:
        return store.beliefs
    scheme = chosen.beliefs.partition(":")[0]
    if scheme in ("postgresql", "postgres"):
        return adapter("postgres").PostgresBeliefs(chosen.beliefs)
    raise UsageError(
        f"No beliefs are reached by {scheme!r}. Write `postgresql://…`, or leave the setting "
        "`beliefs` empty to keep them beside the runs."
    )


def open_documents(chosen: Settings) -> DocumentStore:
    """The document store that the settings name; it connects to nothing before it is used.

    Raises:
        UsageError: no store has such a URL.
    """
    url, timeout = chosen.documents, chosen.documents_timeout
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return adapter("sqlite.documents").SqliteDocuments(url.removeprefix("sqlite:"), timeout)
    if scheme in ("postgresql", "postgres"):
        return adapter("postgres").PostgresDocuments(url, timeout)
    if scheme in ("mongodb", "mongodb+srv"):
        return adapter("mongo").MongoDocuments(url, timeout)
    raise UsageError(
        f"No document store is reached by {scheme!r}. Write `sqlite:FOLDER`, `postgresql://…` or "
        "`mongodb://…`."
    )


class Closing(Protocol):
    """Something that is closed."""

    async def aclose(self) -> None:
        """Let go of what it holds."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What an app consists of."""

    settings: Settings
    clock: Clock
    opened: Sequence[Closing]
    store: Store
    artifacts: Artifacts
    beliefs: BeliefStore
    documents: DocumentStore
    definitions: "Definitions"
    boards: Boards
    flows: Flows
    types: TypeRegistry
    runs: Runs
    collections: Collections

    def declare_board(
        self,
        name: str,
        limit: int,
        variables: Mapping[str, Any],
        hooks: Sequence[Mapping[str, Any]],
        guards: Guards | Mapping[str, Any] | None = None,
    ) -> BoardDeclaration:
        """A board of the app that has no agents yet.

        Raises:
            UsageError: it cannot be called that, or there is one.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"A board is called by letters, digits, '_', '-', '.', not {name!r}.")
        if limit < 1:
            raise UsageError(f"One publish sets off turns from 1 on, not {limit!r}.")
        declared = BoardDeclaration(name, self.types, limit, variables, hooks, guards)
        self.boards.declare(declared)
        return declared

    def bind(self, reader: Reader) -> BoardHandle:
        """The board as somebody sees it."""
        return bind(self.artifacts, self.types, reader, self.clock.now)

    async def aclose(self) -> None:
        """Close what the app opened."""
        for each in self.opened:
            await each.aclose()


@dataclass(frozen=True, slots=True)
class Doors:
    """Objects that a program gives its app, in place of what the settings name and of what the
    system has. They stay open when the app closes."""

    engine: Engine | None = None
    store: Store | None = None
    documents: DocumentStore | None = None
    scheduler: Scheduler | None = None
    clock: Clock | None = None
    entropy: Entropy | None = None
    environment: Environment | None = None
    connect: Connect | None = None


def assemble(asked: Mapping[str, Any], doors: Doors = Doors()) -> Parts:  # noqa: B008 - frozen
    """The parts of an app as it was asked for; nothing is opened yet."""
    chosen, engine = settings(asked), doors.engine
    store = doors.store or open_store(chosen)
    documents = doors.documents or open_documents(chosen)
    artifacts, beliefs = open_artifacts(chosen, store), open_beliefs(chosen, store)
    collections = Collections(chosen)
    given = [name for name in ("model", "engine") if asked.get(name)]
    models = Models(chosen.model, chosen.engine, given)
    boards, types = Boards(engine, collections.search, models), TypeRegistry()
    flows = Flows(engine, collections.search, models)
    folders = Folders(
        engine,
        strict=chosen.strict,
        connect=doors.connect,
        types=types,
        collections=collections,
        models=models,
    )
    definitions = Definitions(folders, boards, flows, store.plans, models)
    stores = Stores(
        store.log,
        store.inbox,
        store.claims,
        store.snapshots,
        artifacts,
        beliefs,
        store.results,
        store.plans,
    )
    world = _world(stores, documents, definitions, doors)
    opened = [
        each
        for each, given in (
            (definitions, None),
            (artifacts, doors.store if artifacts is store.artifacts else None),
            (beliefs, doors.store if beliefs is store.beliefs else None),
            (store, doors.store),
            (documents, doors.documents),
            (collections, None),
        )
        if given is None
    ]
    return Parts(
        chosen,
        world.clock,
        opened,
        store,
        artifacts,
        beliefs,
        documents,
        definitions,
        boards,
        flows,
        types,
        Runs(world),
        collections,
    )


class Definitions:
    """Workflows of an app: folders, boards and flows."""

    def __init__(
        self,
        folders: Folders,
        boards: Boards,
        flows: Flows,
        plans: Plans,
        models: Models | None = None,
    ) -> None:
        self._models = models or Models()
        self._folders = folders
        self._boards = boards
        self._flows = flows
        self._plans = plans

    async def load(self, source: str) -> Loaded:
        """The workflow declared in a folder."""
        return await self._folders.load(source)

    async def restore(self, started: RunStarted) -> Loaded:
        """The workflow as a run began with it."""
        if started.form == Reacting.form:
            return self._boards.restore(started, await self._plan_text(started))
        if started.form == CHAT:
            raise WorkflowGone(
                f"This run of {started.workflow!r} is a group chat that another program ran; only "
                "that program can go on with it. Here it can be explained, and cancelled."
            )
        if started.form == Flowing.form:
            return await self._flows.restore(started, await self._plan_text(started))
        return await self._folders.restore(started)

    def declares(self, started: RunStarted) -> bool:
        """Whether this program can continue a run: a board is code of the program it is in."""
        return started.form != Reacting.form or self._boards.knows(started.workflow)

    async def _plan_text(self, started: RunStarted) -> str:
        plan = await plan_of(self._plans, started)
        return plan.text if plan else "{}"

    async def aclose(self) -> None:
        """Part from the servers of tools, and from the providers of models."""
        await self._folders.aclose()
        await self._models.aclose()


def _world(
    stores: Stores, documents: DocumentStore, definitions: Definitions, doors: Doors
) -> World:
    """What the program gave, else the system's clock and chance, and tasks of this process."""
    system = adapter("system")
    clock = doors.clock or system.SystemClock()
    return World(
        stores,
        clock,
        doors.entropy or system.SystemEntropy(),
        doors.environment or system.SystemEnvironment(),
        documents,
        definitions,
        doors.scheduler or adapter("inline").InlineScheduler(clock),
    )


def read_part(path: str, part: str) -> tuple[Document | None, list[Diagnostic]]:
    """One part of a workflow, from its folder or from its own file, and the problems of reading.

    Raises:
        UsageError: nothing is there, or two files declare the part.
    """
    return adapter("files").read_part(path, part)


def workflows_below(path: str) -> list[str]:
    """The workflow folders directly below a folder that is none itself."""
    return adapter("files").workflows_below(path)


async def declared(started: RunStarted) -> Declared:
    """What the declarations say that a run began with, as far as explanations need it."""
    if started.form in (Reacting.form, Flowing.form):
        return Declared({}, None)
    restore = adapter("files").restore_folder
    folder, problems = await to_thread.run_sync(
        restore, started.workflow, started.root, started.files, started.code
    )
    broken = frozenset(FilePath(problem.file).stem for problem in problems)
    document = folder.documents.get("context_variables")
    descriptions = {} if document is None else describe(document)
    return Declared(descriptions, deciding(folder, broken))


def write_back(path: str, value: Json) -> str:
    """Write a file again in its own format, and give the path of a copy of the former one.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    return adapter("files").write_back(path, value)
