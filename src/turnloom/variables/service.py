"""Reading first values from the world: the environment, and documents, all at once; indexes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

from turnloom.errors import DocumentsUnavailable, MissingContext
from turnloom.kernel.values import Json
from turnloom.variables.events import UNAVAILABLE
from turnloom.variables.logic.resolution import (
    INCLUDE_SCHEMA,
    PRODUCTION,
    Gates,
    LookupResult,
    Readings,
    Resolved,
    flags,
    gates,
    lookups,
    missing,
    purge,
    resolve,
)
from turnloom.variables.logic.types import TRUE
from turnloom.variables.ports import DocumentStore, Environment, Lookup
from turnloom.variables.spec import DatabaseSource, Variables

VERBOSE = "CONTEXT_VERBOSE_DEBUG"

log = logging.getLogger("turnloom.context")


class LookupIndex(NamedTuple):
    """The index that lookups of database variables use; `made` unless its collection is missing.

    Where no database is named, the store's default one is meant.
    """

    database: str | None
    collection: str
    field: str
    made: bool


class ContextSource:
    """Where the first values of runs come from."""

    def __init__(self, environment: Environment, documents: DocumentStore) -> None:
        self._environment = environment
        self._documents = documents

    @property
    def is_verbose(self) -> bool:
        """Whether every change of a value is to be told in the program's log."""
        said = self._environment.get(VERBOSE)
        return said is not None and said.strip().lower() in TRUE

    async def load(
        self, variables: Variables, base: Mapping[str, Json], database: str | None
    ) -> Resolved:
        """The first values of a run.

        Raises:
            MissingContext: a required variable has no value.
        """
        get = self._environment.get
        closed = gates(get(PRODUCTION), get(INCLUDE_SCHEMA))
        readings = await self._read(variables, base, database, closed)
        resolved, late = purge(resolve(variables, base, readings))
        if late:
            log.warning("suppressed only at the last moment: %s", ", ".join(late))
        problems = missing(variables, resolved)
        if problems:
            raise MissingContext(problems)
        for each in resolved.suppressed:
            log.info("%s: %s", each.reason, ", ".join(each.names))
        return resolved

    async def secrets(
        self, variables: Variables, base: Mapping[str, Json], database: str | None
    ) -> Mapping[str, Json]:
        """The secrets of a run that goes on, read again from their sources.

        Which of them the run has was decided when it began; no gate decides it again.
        """
        kept = {n: d for n, d in variables.definitions.items() if d.secret}
        if not kept:
            return {}
        secret = Variables(definitions=kept)
        readings = await self._read(secret, base, database, Gates(False, False))
        return resolve(secret, base, readings).secrets

    async def _read(
        self, variables: Variables, base: Mapping[str, Json], database: str | None, closed: Gates
    ) -> Readings:
        get = self._environment.get
        environment = {
            source.env_var: get(source.env_var) for _, source in flags(variables, closed)
        }
        wanted = list(lookups(variables, closed))
        if not wanted:
            return Readings(closed, environment, {})
        found = await asyncio.gather(*(self._find(source, base, database) for _, source in wanted))
        names = [definition.name for definition, _ in wanted]
        return Readings(closed, environment, dict(zip(names, found, strict=True)))

    async def _find(
        self, source: DatabaseSource, base: Mapping[str, Json], database: str | None
    ) -> LookupResult:
        lookup = _lookup(source, database, str(base[source.search_by]), str(base["app_id"]))
        try:
            return LookupResult(await self._documents.newest(lookup))
        except DocumentsUnavailable as error:
            log.warning("%s", error)
            return LookupResult(None, f"{UNAVAILABLE}{error}")


async def index(
    documents: DocumentStore, variables: Variables, database: str | None
) -> AsyncGenerator[LookupIndex, None]:
    """See to every index that the database variables of a workflow use, one after the other.

    Raises:
        DocumentsUnavailable: the store does not answer, in time or at all.
    """
    sources = [source for _, source in lookups(variables, Gates(False, False))]
    for wanted in dict.fromkeys(_lookup(source, database) for source in sources):
        made = await documents.index(wanted)
        yield LookupIndex(wanted.database, wanted.collection, wanted.key, made)


def _lookup(
    source: DatabaseSource, database: str | None, value: str = "", tenant: str = ""
) -> Lookup:
    name = source.database_name or database
    return Lookup(name, source.collection, source.search_by, value, tenant=tenant)
