"""Stores, schedulers and vectors that the settings name. They connect on first use."""

from os.path import exists
from typing import Any

from turnloom.assembly.ports import Vectors, VectorStore
from turnloom.assembly.spec.retrieval import Space
from turnloom.errors import UsageError
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
    """Open the store of runs.

    Raises:
        UsageError: the URL is invalid.
    """
    there, beside = place("store", chosen.store), not chosen.artifacts
    if there.make is not None:
        return there.make(there.url)
    if there.scheme == "memory":
        return adapter("memory").MemoryStore(codec(), board=beside)
    if there.scheme in POSTGRES:
        return adapter("postgres").PostgresStore(
            there.url,
            codec(),
            lease=chosen.lease,
            listen_url=chosen.listen_url,
            clock=adapter("system").SystemClock(),
            board=beside,
        )
    return adapter("sqlite").SqliteStore(
        there.rest,
        codec(),
        board=beside,
        lease=chosen.lease,
        is_synced=chosen.synchronous == "full",
    )


def missing_store(given: str | None) -> SettingValue | None:
    """File and origin of the `store` setting, if the file does not exist.

    Raises:
        UsageError: the URL is invalid.
    """
    chosen = in_force({"store": given})["store"]
    there = place("store", chosen.value)
    is_file = there.make is None and there.scheme == SQLITE
    return SettingValue(there.rest, chosen.origin) if is_file and not exists(there.rest) else None


def open_artifacts(chosen: Settings, store: Store) -> Artifacts:
    """Open the artifacts of the store, or those of the `artifacts` setting.

    Raises:
        UsageError: the URL is invalid.
    """
    if not chosen.artifacts:
        return port_of(store, "artifacts")
    there = place("artifacts", chosen.artifacts)
    make = there.make or adapter("postgres").PostgresArtifacts
    return make(there.url)


def open_beliefs(chosen: Settings, store: Store) -> BeliefStore:
    """Open the beliefs about agents in the store, or those of the `beliefs` setting.

    Raises:
        UsageError: the URL is invalid.
    """
    if not chosen.beliefs:
        return port_of(store, "beliefs")
    there = place("beliefs", chosen.beliefs)
    make = there.make or adapter("postgres").PostgresBeliefs
    return make(there.url)


def open_documents(chosen: Settings) -> DocumentStore:
    """Open the documents of database variables.

    Raises:
        UsageError: the URL is invalid.
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
    """Open the scheduler of runs.

    Raises:
        UsageError: the name is unknown, or the scheduler does not fit the store.
    """
    there = place("scheduler", chosen.scheduler)
    if there.make is not None:
        return there.make(there.url)
    if there.scheme == "procrastinate":
        store = place("store", chosen.store)
        if store.scheme not in POSTGRES:
            raise UsageError(
                "Scheduler 'procrastinate' works on the PostgreSQL database of the store. Set "
                '`store = "postgresql://…"`, or leave out `scheduler`.'
            )
        return adapter("procrastinate").ProcrastinateScheduler(
            store.url, listen_url=chosen.listen_url, lease=chosen.lease
        )
    return adapter("inline").InlineScheduler(clock)


def open_vectors(chosen: Settings) -> Vectors:
    """Open the vector store of collections.

    Raises:
        UsageError: the URL is invalid.
    """
    there = place("vectors", chosen.vectors)
    return there.make(there.url) if there.make else _NamedVectors(there)


class _NamedVectors:
    """Vector store of a URL."""

    def __init__(self, there: SchemeTarget) -> None:
        self._there = there

    def open(self, collection: str, space: Space) -> VectorStore:
        """Open the vectors of a collection."""
        there = self._there
        made: Any
        if there.scheme == SQLITE:
            made = adapter("sqlite.vectors").SqliteVectors(there.rest, collection, space)
        elif there.scheme in POSTGRES:
            made = adapter("postgres").PostgresVectors(there.url, collection, space)
        else:
            made = adapter("memory").MemoryVectors()
        return made
