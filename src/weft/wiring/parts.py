"""What an app consists of: stores, definitions, runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from anyio import to_thread

from weft.agents.spec import Engine
from weft.conversation.logic.deciding import deciding
from weft.errors import Diagnostic, UsageError
from weft.explain.spec.asked import Declared
from weft.kernel.documents import Document
from weft.kernel.values import Json
from weft.log.events import RunStarted
from weft.runtime.logic import codec
from weft.runtime.service.driver import Stores
from weft.runtime.service.runs import Runs, World
from weft.variables.logic.descriptions import describe
from weft.variables.ports import DocumentStore
from weft.wiring.adapters import adapter
from weft.wiring.collections import Collections
from weft.wiring.folders import Folders
from weft.wiring.settings import Settings, settings


def open_store(chosen: Settings) -> Any:
    """The store that the settings name; it opens nothing before it is used."""
    if chosen.store == "memory":
        return adapter("memory").MemoryStore(codec())
    return adapter("sqlite").SqliteStore(chosen.store, codec())


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


@dataclass(frozen=True, slots=True)
class Parts:
    """What an app consists of."""

    settings: Settings
    store: Any
    documents: DocumentStore
    definitions: Folders
    runs: Runs
    collections: Collections

    async def aclose(self) -> None:
        """Close the stores."""
        await self.definitions.aclose()
        await self.store.aclose()
        await self.documents.aclose()
        await self.collections.aclose()


def assemble(asked: Mapping[str, Any], engine: Engine | None) -> Parts:
    """The parts of an app as it was asked for; nothing is opened yet."""
    chosen = settings(asked)
    store, documents = open_store(chosen), open_documents(chosen)
    definitions = Folders(engine, strict=chosen.strict)
    runs = Runs(world(store, documents, definitions))
    return Parts(chosen, store, documents, definitions, runs, Collections(chosen))


def world(store: Any, documents: DocumentStore, definitions: Folders) -> World:
    """The world of an app: its stores, the system's clock and chance, tasks of this process."""
    system = adapter("system")
    clock = system.SystemClock()
    return World(
        Stores(store.log, store.inbox, store.claims, store.snapshots),
        clock,
        system.SystemEntropy(),
        system.SystemEnvironment(),
        documents,
        definitions,
        adapter("inline").InlineScheduler(clock),
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
