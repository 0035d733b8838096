"""What the settings name, opened: each connects to nothing before it is used."""

from os.path import exists
from typing import Any

from turnloom.assembly.ports import Vectors, VectorStore
from turnloom.assembly.spec.retrieval import Space
from turnloom.guards.ports import BeliefStore
from turnloom.log.ports import Clock
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import Artifacts, Scheduler, Store
from turnloom.variables.ports import DocumentStore
from turnloom.wiring.adapters import adapter
from turnloom.wiring.doors import port_of
from turnloom.wiring.schemes import POSTGRES, SQLITE, SchemeTarget, place
from turnloom.wiring.settings import Settings, SettingValue, in_force


def open_store(chosen: Settings) -> Store:
    """The store of runs.

    Raises:
        UsageError: there is no such store.
    """
    there, beside = place("store", chosen.store), not chosen.artifacts
    if there.make is not None:
        return there.make(there.url)
    if there.scheme == "memory":
        return adapter("memory").MemoryStore(codec(), board=beside)
    return adapter("sqlite").SqliteStore(
        there.rest,
        codec(),
        board=beside,
        lease=chosen.lease,
        is_synced=chosen.synchronous == "full",
    )


def missing_store(given: str | None) -> SettingValue | None:
    """The file of the store that is in force, if there is none, and where the setting came from.

    Raises:
        UsageError: the setting names nothing.
    """
    chosen = in_force({"store": given})["store"]
    there = place("store", chosen.value)
    is_file = there.make is None and there.scheme == SQLITE
    return SettingValue(there.rest, chosen.origin) if is_file and not exists(there.rest) else None


def open_artifacts(chosen: Settings, store: Store) -> Artifacts:
    """The artifacts: those of the store, or of a server of their own.

    Raises:
        UsageError: there are no such artifacts.
    """
    if not chosen.artifacts:
        return port_of(store, "artifacts")
    there = place("artifacts", chosen.artifacts)
    make = there.make or adapter("postgres").PostgresArtifacts
    return make(there.url)


def open_beliefs(chosen: Settings, store: Store) -> BeliefStore:
    """What is known of agents: beside the runs, or on a server of its own.

    Raises:
        UsageError: there are no such beliefs.
    """
    if not chosen.beliefs:
        return port_of(store, "beliefs")
    there = place("beliefs", chosen.beliefs)
    make = there.make or adapter("postgres").PostgresBeliefs
    return make(there.url)


def open_documents(chosen: Settings) -> DocumentStore:
    """The documents of database variables.

    Raises:
        UsageError: there are no such documents.
    """
    there, timeout = place("documents", chosen.documents), chosen.documents_timeout
    if there.make is not None:
        return there.make(there.url)
    if there.scheme == SQLITE:
        return adapter("sqlite.documents").SqliteDocuments(there.rest, timeout)
    if there.scheme in POSTGRES:
        return adapter("postgres").PostgresDocuments(there.url, timeout)
    return adapter("mongo").MongoDocuments(there.url, timeout)


def open_scheduler(chosen: Settings, clock: Clock) -> Scheduler:
    """What drives runs.

    Raises:
        UsageError: there is no such scheduler.
    """
    there = place("scheduler", chosen.scheduler)
    return there.make(there.url) if there.make else adapter("inline").InlineScheduler(clock)


def open_vectors(chosen: Settings) -> Vectors:
    """Where collections are kept.

    Raises:
        UsageError: there are no such collections.
    """
    there = place("vectors", chosen.vectors)
    return there.make(there.url) if there.make else _NamedVectors(there)


class _NamedVectors:
    """The vectors that a setting names."""

    def __init__(self, there: SchemeTarget) -> None:
        self._there = there

    def open(self, collection: str, space: Space) -> VectorStore:
        """The vectors of a collection."""
        there = self._there
        made: Any
        if there.scheme == SQLITE:
            made = adapter("sqlite.vectors").SqliteVectors(there.rest, collection, space)
        elif there.scheme in POSTGRES:
            made = adapter("postgres").PostgresVectors(there.url, collection, space)
        else:
            made = adapter("memory").MemoryVectors()
        return made
