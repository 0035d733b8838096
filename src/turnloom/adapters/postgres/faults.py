"""Messages with remedies for PostgreSQL's errors, without the password."""

from collections.abc import Mapping
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

_WRONG_TABLE = (
    *(errors.UndefinedColumn, errors.UndefinedFunction, errors.DatatypeMismatch),
    *(errors.WrongObjectType, errors.InvalidTextRepresentation),
)


_GRANT = (
    "Grant the user in the URL the right to use and create tables there: `GRANT USAGE, CREATE ON "
    "SCHEMA public TO …`. If another user made the tables, also grant SELECT, INSERT, UPDATE and "
    "DELETE on them, and USAGE on their sequences."
)

_INCOMPLETE = (
    "Tables of Turnloom are missing there, or were restored in part. Restore all of them from a "
    "backup, or name another database or schema in the URL."
)

# What to do about errors of a store.
_REMEDIES: dict[type[psycopg.Error], str] = {
    errors.DiskFull: (
        "Free some space on its disk; then continue the run with `turnloom resume RUN`."
    ),
    errors.ReadOnlySqlTransaction: (
        "It is a standby, or read-only. Use the URL of the primary server."
    ),
    errors.InvalidSchemaName: (
        "Create the schema in the search path of the user in the URL: `CREATE SCHEMA …`."
    ),
    errors.InsufficientPrivilege: _GRANT,
    errors.QueryCanceled: (
        "It ends statements of the user in the URL too early. Allow them some seconds: `ALTER ROLE "
        "… SET statement_timeout = '10s'`."
    ),
    errors.LockNotAvailable: (
        "It ends statements of the user in the URL that wait for others. Allow them some seconds: "
        "`ALTER ROLE … SET lock_timeout = '10s'`."
    ),
    errors.UndefinedTable: _INCOMPLETE,
    errors.UndefinedColumn: _INCOMPLETE,
    errors.UndefinedFunction: _INCOMPLETE,
    errors.DuplicateTable: _INCOMPLETE,
}

# The same for errors while connecting, by what is said: libpq tells no SQLSTATE.
_CONNECTING: dict[tuple[str, ...], str] = {
    ("unsupported startup parameter",): (
        "A pooler stands between, which does not pass options on. Remove `options` from the URL; "
        "choose a schema with `ALTER ROLE … SET search_path = …`."
    ),
    ("no password supplied",): "Write the password into the URL, or set PGPASSWORD.",
    ("password authentication failed", "SASL authentication failed"): (
        "Check the user and the password in the URL; write '@' in a password as '%40'."
    ),
    ("permission denied for database",): (
        "Let the user in the URL in: `GRANT CONNECT ON DATABASE … TO …`."
    ),
    ("no pg_hba.conf entry",): (
        "It lets this user in from other machines, to other databases, or with TLS only: check its "
        "`pg_hba.conf`, and add `?sslmode=require` to the URL if it requires TLS."
    ),
    ("does not support SSL",): "Turn TLS on there, or remove `sslmode` from the URL.",
    ("certificate",): (
        "Check `sslrootcert`, `sslcert` and `sslkey` in the URL, and that its certificate is meant "
        "for this host."
    ),
    ('" does not exist',): "Create it on the server, or name another one in the URL.",
    ("starting up", "shutting down", "recovery mode"): "Wait until it has started, and try again.",
    ("Connection refused", "resolve host", "unreachable", "No such file", "timeout expired"): (
        "Check that the server runs, and check the host and the port in the URL."
    ),
}

_CROWDED = (
    "Raise `max_connections` there, or the limit of the role or the database (`ALTER ROLE … "
    "CONNECTION LIMIT`), run fewer programs, or put a pooler such as PgBouncer in between."
)
# What the server says when it has too many connections: of errors while connecting, libpq tells no
# SQLSTATE.
_TOO_MANY = ("too many connections", "too many clients", "remaining connection slots")


def is_crowded(error: psycopg.Error) -> bool:
    """Whether the server refuses a connection because it has too many."""
    said = str(error)
    return error.sqlstate == "53300" or any(words in said for words in _TOO_MANY)


# Classes of SQLSTATE that pass: lost connections, deadlocks, shutdowns and starts; and single ones.
_PASSING = ("08", "40", "57P", "53300")


def is_passing(cause: BaseException | None) -> bool:
    """Whether the same statement may succeed soon."""
    if isinstance(cause, TimeoutError):
        return True
    if not isinstance(cause, psycopg.OperationalError):
        return False
    return cause.sqlstate is None or cause.sqlstate.startswith(_PASSING)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """The address of a server, and the password to mask in messages."""

    address: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"PostgreSQL at {self.address}"

    def timed_out(self, lookup: Lookup, seconds: float) -> DocumentsUnavailable:
        """The error for a lookup that timed out."""
        return DocumentsUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            f"overloaded. Create an index on {lookup.key!r} in {lookup.collection!r} to speed up "
            "the lookup."
        )

    def unavailable(self, lookup: Lookup, error: psycopg.Error) -> DocumentsUnavailable:
        """The error of a lookup, with a remedy."""
        reason = self._reason(error)
        if isinstance(error, _WRONG_TABLE):
            return DocumentsUnavailable(
                f"Table {lookup.collection!r} of {self} is not a collection: {reason}. "
                "Use a table with the columns id and doc (jsonb)."
            )
        if isinstance(error, errors.InsufficientPrivilege):
            return DocumentsUnavailable(
                f"{self} denies access to table {lookup.collection!r}: {reason}. "
                "Grant the missing privileges to the user in the URL."
            )
        return DocumentsUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and check the host, "
            "user, password and database in the URL of the documents."
        )

    def store_timed_out(self, seconds: float) -> StoreUnavailable:
        """The error for a store that timed out."""
        return StoreUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            "overloaded, and try again."
        )

    def store_unavailable(self, error: psycopg.Error) -> StoreUnavailable:
        """The error of a store, with a remedy."""
        return StoreUnavailable(f"{self} cannot be used: {self._reason(error)}. {_remedy(error)}")

    def collection_timed_out(self, seconds: float) -> CollectionUnavailable:
        """The error for a collection that timed out."""
        return CollectionUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            "overloaded, and try again."
        )

    def collection_unavailable(self, error: psycopg.Error) -> CollectionUnavailable:
        """The error of a collection, with a remedy."""
        reason = self._reason(error)
        if isinstance(error, errors.UndefinedFile | errors.FeatureNotSupported):
            return CollectionUnavailable(
                f"{self} has no pgvector: {reason}. Install the extension on the server."
            )
        if isinstance(error, errors.InsufficientPrivilege | errors.InvalidSchemaName):
            return CollectionUnavailable(
                f"{self} denies access to the tables of the collections: {reason}. Grant the "
                "missing privileges to the user in the URL, or run `CREATE EXTENSION vector` as an "
                "administrator."
            )
        return CollectionUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and check the host, "
            "user, password and database in the URL of the collections."
        )

    def _reason(self, error: psycopg.Error) -> str:
        message = error.diag.message_primary or str(error)
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        text = lines[0].rstrip(".") if lines else type(error).__name__
        text = text.removeprefix("connection failed: ")
        return text.replace(self.password, "…") if self.password else text


def _remedy(error: psycopg.Error) -> str:
    """What to do about an error of a store."""
    if is_crowded(error):
        return _CROWDED
    for kind, remedy in _REMEDIES.items():
        if isinstance(error, kind):
            return remedy
    said = str(error)
    for parts, remedy in _CONNECTING.items():
        if any(part in said for part in parts):
            return remedy
    return (
        "Check that the server runs, and check the host, user, password and database in the URL of "
        "the store."
    )


def locate(url: str, what: str = "documents") -> PostgresServer:
    """The server that a URL points to.

    Raises:
        UsageError: the URL is not one of PostgreSQL.
    """
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        raise _invalid(what) from None
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    port = parts.get("port") or "5432"
    if _is_cut(host, port, parts):
        raise _invalid(what)
    return PostgresServer(_join(host, port), parts.get("password") or "")


def _invalid(what: str) -> UsageError:
    """The refusal of a URL. It repeats nothing of it, and neither does its cause: that may be a
    part of the password."""
    return UsageError(
        f"Invalid URL of the {what}. Use postgresql://USER:PASSWORD@HOST:5432/DATABASE, with '%40' "
        "for '@' and '%2F' for '/' in a password, and behind '?' only options of PostgreSQL's "
        "client library, such as `sslmode=require`."
    )


def _is_cut(host: str, port: str, parts: Mapping[str, str]) -> bool:
    """Whether a '@' or '/' in the password ended it early: libpq takes the rest of it, or all of
    it, for the host, the port or the database."""
    if any("@" in name for name in host.split(",") if not name.startswith(("/", "@"))):
        return True  # a socket may have a name like that
    if not all(number.isdecimal() or not number for number in port.split(",")):
        return True
    return "user" not in parts and "@" in parts.get("dbname", "")


def _join(hosts: str, ports: str) -> str:
    names, numbers = hosts.split(","), ports.split(",")
    numbers = numbers * len(names) if len(numbers) == 1 else numbers
    return ", ".join(f"{name}:{number}" for name, number in zip(names, numbers, strict=False))
