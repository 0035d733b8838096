"""Loading of first values from the environment and from documents; indexes for lookups."""

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
    ResolvedContext,
    flags,
    gates,
    lookups,
    missing,
    purge,
    resolve,
)
from turnloom.variables.logic.types import TRUE
from turnloom.variables.ports import DocumentStore, Environment, Lookup
from turnloom.variables.spec import BASE, DatabaseSource, Variables

VERBOSE = "CONTEXT_VERBOSE_DEBUG"

log = logging.getLogger("turnloom.context")


class LookupIndex(NamedTuple):
    """The index of a database lookup; `made` is false if its collection is missing.

    `database` is None for the store's default.
    """

    database: str | None
    collection: str
    field: str
    made: bool


class ContextSource:
    """The source of the first values of runs."""

    def __init__(self, environment: Environment, documents: DocumentStore) -> None:
        self._environment = environment
        self._documents = documents

    @property
    def is_verbose(self) -> bool:
        """Whether to log every change of a value."""
        said = self._environment.get(VERBOSE)
        return said is not None and said.strip().lower() in TRUE

    async def load(
        self,
        variables: Variables,
        base: Mapping[str, Json],
        database: str | None,
        files: Mapping[str, Json] | None = None,
    ) -> ResolvedContext:
        """The first values of a run; `files` are the contents of files by variable.

        Raises:
            MissingContext: a required variable has no value.
        """
        get = self._environment.get
        closed = gates(get(PRODUCTION), get(INCLUDE_SCHEMA))
        readings = await self._read(variables, base, database, closed)
        if files:
            readings = readings._replace(files=files)
        resolved, late = purge(resolve(variables, base, readings))
        if late:
            log.warning("suppressed late: %s", ", ".join(late))
        problems = missing(variables, resolved)
        if problems:
            raise MissingContext(problems)
        for each in resolved.suppressed:
            log.info("%s: %s", each.reason, ", ".join(each.names))
        return resolved

    async def secrets(
        self, variables: Variables, base: Mapping[str, Json], database: str | None
    ) -> Mapping[str, Json]:
        """The secrets of a resumed run, read again from their sources.

        The gates were applied when the run began; they are not applied again.
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
        wanted = lookups(variables, closed)
        if not wanted:
            return Readings(closed, environment, {})
        found = await asyncio.gather(*(self._find(source, base, database) for _, source in wanted))
        names = [definition.name for definition, _ in wanted]
        return Readings(closed, environment, dict(zip(names, found, strict=True)))

    async def _find(
        self, source: DatabaseSource, base: Mapping[str, Json], database: str | None
    ) -> LookupResult:
        lookup = _lookup(source, base, database)
        try:
            return LookupResult(await self._documents.newest(lookup))
        except DocumentsUnavailable as error:
            log.warning("%s", error)
            return LookupResult(None, f"{UNAVAILABLE}{error}")


async def index(
    documents: DocumentStore, variables: Variables, database: str | None
) -> AsyncGenerator[LookupIndex, None]:
    """Create every index that the database variables of a workflow use, in order.

    Raises:
        DocumentsUnavailable: the store failed or timed out.
    """
    sources = [source for _, source in lookups(variables, Gates(False, False))]
    blank: dict[str, Json] = dict.fromkeys(BASE, "")
    every = (_lookup(source, blank, database) for source in sources)
    for wanted in dict.fromkeys(each._replace(value="", filter=()) for each in every):
        made = await documents.index(wanted)
        yield LookupIndex(wanted.database, wanted.collection, wanted.key, made)


def _lookup(source: DatabaseSource, base: Mapping[str, Json], database: str | None) -> Lookup:
    """The lookup of a source. Its key is the first field with an id, or else with a text."""
    named = [(key, str(base[name])) for key, name in source.ids.items()]
    fixed = sorted(source.constants.items(), key=lambda each: not isinstance(each[1], str))
    (key, value), *more = [*named, *fixed]
    name = source.database_name or database
    return Lookup(
        name, source.collection, key, value, tenant=str(base["app_id"]), filter=tuple(more)
    )
