"""What PostgreSQL's errors mean to a person; never with the password."""

from dataclasses import dataclass, field

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from turnloom.errors import (
    CollectionUnavailable,
    DocumentsUnavailable,
    StoreUnavailable,
    UsageError,
)
from turnloom.variables.ports import Lookup

_STRANGE = (
    *(errors.UndefinedColumn, errors.UndefinedFunction, errors.DatatypeMismatch),
    *(errors.WrongObjectType, errors.InvalidTextRepresentation),
)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """Where a server is, and the password that no message may hold."""

    place: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"PostgreSQL at {self.place}"

    def silent(self, lookup: Lookup, seconds: float) -> DocumentsUnavailable:
        """The error of a server that said nothing in time."""
        return DocumentsUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            f"overloaded; an index on {lookup.key!r} in {lookup.collection!r} makes the lookup "
            "quick."
        )

    def unavailable(self, lookup: Lookup, error: psycopg.Error) -> DocumentsUnavailable:
        """The error as a sentence with a remedy."""
        reason = self._reason(error)
        if isinstance(error, _STRANGE):
            return DocumentsUnavailable(
                f"Table {lookup.collection!r} of {self} is not a collection: {reason}. "
                "A collection is a table with the columns id and doc (jsonb)."
            )
        if isinstance(error, errors.InsufficientPrivilege):
            return DocumentsUnavailable(
                f"{self} refuses table {lookup.collection!r}: {reason}. "
                "Grant the user of the URL what is missing."
            )
        return DocumentsUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and that host, user, "
            "password and database in the URL of the documents are right."
        )

    def store_silent(self, seconds: float) -> StoreUnavailable:
        """The error of a server that did not answer the store in time."""
        return StoreUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            "overloaded; what was asked may be asked again."
        )

    def store_unavailable(self, error: psycopg.Error) -> StoreUnavailable:
        """What went wrong with the store, as a sentence with a remedy."""
        reason = self._reason(error)
        if isinstance(error, errors.InsufficientPrivilege | errors.InvalidSchemaName):
            return StoreUnavailable(
                f"{self} refuses the tables of the store: {reason}. "
                "Grant the user of the URL what is missing."
            )
        return StoreUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and that host, user, "
            "password and database in the URL of the store are right."
        )

    def collection_silent(self, seconds: float) -> CollectionUnavailable:
        """The error of a server that did not answer a collection in time."""
        return CollectionUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            "overloaded; what was asked may be asked again."
        )

    def collection_unavailable(self, error: psycopg.Error) -> CollectionUnavailable:
        """What went wrong with a collection, as a sentence with a remedy."""
        reason = self._reason(error)
        if isinstance(error, errors.UndefinedFile | errors.FeatureNotSupported):
            return CollectionUnavailable(
                f"{self} has no pgvector: {reason}. Install that extension on the server."
            )
        if isinstance(error, errors.InsufficientPrivilege | errors.InvalidSchemaName):
            return CollectionUnavailable(
                f"{self} refuses the tables of the collections: {reason}. Grant the user of the "
                "URL what is missing, or have `CREATE EXTENSION vector` run by one who may."
            )
        return CollectionUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and that host, user, "
            "password and database in the URL of the collections are right."
        )

    def _reason(self, error: psycopg.Error) -> str:
        said = error.diag.message_primary or str(error)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        text = lines[0].rstrip(".") if lines else type(error).__name__
        return text.replace(self.password, "…") if self.password else text


def locate(url: str, what: str = "documents") -> PostgresServer:
    """Where a URL points to.

    Raises:
        UsageError: it is not a URL of PostgreSQL.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What libpq says about a URL repeats parts of it, the password perhaps.
        raise UsageError(
            f"The URL of the {what} cannot be read. It looks like "
            "postgresql://USER:PASSWORD@HOST:5432/DATABASE, with '%40' for '@' in a password."
        ) from None
    host = str(parts.get("host") or parts.get("hostaddr") or "localhost")
    port = str(parts.get("port") or "5432")
    return PostgresServer(_join(host, port), str(parts.get("password") or ""))


def _join(hosts: str, ports: str) -> str:
    names, numbers = hosts.split(","), ports.split(",")
    numbers = numbers * len(names) if len(numbers) == 1 else numbers
    return ", ".join(f"{name}:{number}" for name, number in zip(names, numbers, strict=False))
