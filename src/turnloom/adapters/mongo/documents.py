"""Documents in MongoDB."""

from asyncio import Task, create_task, wait
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

import anyio
import pymongo
from bson.codec_options import DatetimeConversion
from bson.errors import BSONError
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import (
    ConfigurationError,
    InvalidName,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)

from turnloom.adapters.mongo import reading
from turnloom.errors import DocumentsUnavailable, UsageError
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import is_storable, steps
from turnloom.variables.ports import Lookup

# Unauthorized, AuthenticationFailed.
_FORBIDDEN = (13, 18)


@dataclass(frozen=True, slots=True)
class MongoServer:
    """The address of a server, and the password to mask in messages."""

    address: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"MongoDB at {self.address}"

    def timed_out(self, lookup: Lookup, seconds: float) -> DocumentsUnavailable:
        """The error for a lookup that timed out."""
        return DocumentsUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            f"overloaded. Create an index on {lookup.key!r} in {lookup.collection!r} to speed up "
            "the lookup."
        )

    def unavailable(
        self, lookup: Lookup, error: PyMongoError, seconds: float
    ) -> DocumentsUnavailable:
        """The error of a lookup, with a remedy."""
        reason = self._reason(error)
        if not reason:
            return self.timed_out(lookup, seconds)
        if isinstance(error, OperationFailure) and error.code in _FORBIDDEN:
            return DocumentsUnavailable(
                f"{self} denies access to {lookup.collection!r}: {reason}. Check the user and "
                "password in the URL of the documents, and the user's privileges."
            )
        return DocumentsUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and check the URL of "
            "the documents."
        )

    def _reason(self, error: PyMongoError) -> str:
        """The driver's message; empty if it only reports a timeout."""
        text = str(error)
        if isinstance(error, OperationFailure):
            text = str((error.details or {}).get("errmsg", text))
        elif isinstance(error, ServerSelectionTimeoutError):
            text = "" if text.startswith("No servers found") else text.partition(", Timeout:")[0]
        elif error.timeout:
            text = ""
        text = text.partition(" (configured timeouts")[0].rstrip(".")
        return text.replace(self.password, "…") if self.password else text


def locate(url: str) -> MongoServer:
    """The server that a valid URL points to."""
    # The standard library rejects several hosts in one URL.
    scheme, _, rest = url.partition("://")
    login, _, hosts = rest.partition("/")[0].partition("?")[0].rpartition("@")
    default = "" if scheme == "mongodb+srv" else ":27017"
    addresses = [unquote(host) for host in hosts.split(",")]
    addresses = [
        address if ":" in address or address[:1] == "/" else address + default
        for address in addresses
    ]
    return MongoServer(", ".join(addresses), unquote(login.partition(":")[2]))


# Seconds beyond the driver's own timeout until a call is abandoned.
GRACE = 0.5
# The time limit in seconds for building an index, which reads the whole collection.
INDEX_TIMEOUT = 600.0

T = TypeVar("T")


class MongoDocuments:
    """Documents in the databases of one MongoDB server."""

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._client = _make_client(url, timeout)
        self._server: MongoServer = locate(url)
        self._timeout = timeout
        self._closed = False
        self._tasks: set[Task[Any]] = set()

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The newest matching document; None also if the database or collection does not exist.

        Raises:
            DocumentsUnavailable: the server fails or does not answer in time.
            UsageError: a name is invalid, the database is missing, or the documents are closed.
        """

        async def read() -> Mapping[str, Json] | None:
            with pymongo.timeout(self._timeout):
                return await reading.newest(collection, lookup)

        collection = self._collection(lookup)
        if not is_storable(lookup.texts):
            return None
        return await self._run(read, lookup, self._timeout)

    async def index(self, lookup: Lookup) -> bool:
        """Create an index on the key if the collection exists."""

        async def build() -> bool:
            with pymongo.timeout(self._timeout):
                present = await collection.database.list_collection_names()
            # Indexing a missing collection would create it.
            exists = lookup.collection in present
            if exists:
                await reading.index(collection, lookup)
            return exists

        collection = self._collection(lookup)
        return await self._run(build, lookup, INDEX_TIMEOUT)

    async def aclose(self) -> None:
        """Close the connections and refuse all later calls. Idempotent."""
        self._closed = True
        with anyio.move_on_after(self._timeout + GRACE, shield=True):
            await self._shielded(self._client.close())

    def _collection(self, lookup: Lookup) -> reading.Collection:
        if self._closed:
            raise UsageError("The documents are closed. Open them again.")
        for key, _ in lookup.conditions:
            steps(key)
        try:
            return self._database(lookup.database)[_checked(lookup.collection)]
        except InvalidName as error:
            names = f"{lookup.database!r} and {lookup.collection!r}"
            raise UsageError(
                f"Invalid database and collection names {names} for MongoDB: {error}."
            ) from error

    def _database(self, name: str | None) -> AsyncDatabase[dict[str, Any]]:
        if name is not None:
            return self._client[_checked(name)]
        try:
            return self._client.get_default_database()
        except ConfigurationError as error:
            raise UsageError(
                "No database is configured. Set `database_name`, or end the URL of the documents "
                "with one, as in mongodb://HOST:27017/DATABASE."
            ) from error

    async def _run(
        self, work: Callable[[], Coroutine[Any, Any, T]], lookup: Lookup, limit: float
    ) -> T:
        try:
            with anyio.fail_after(limit + GRACE):
                return await self._shielded(work())
        except TimeoutError as error:
            raise self._server.timed_out(lookup, limit) from error
        except PyMongoError as error:
            raise self._server.unavailable(lookup, error, self._timeout) from error
        except (BSONError, LookupError, ValueError) as error:
            raise DocumentsUnavailable(
                f"Cannot read the answer of {self._server} for {lookup.collection!r}: {error}. "
                "Check that it is a MongoDB server, and repair the document."
            ) from error

    async def _shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that continues if the caller is cancelled.

        If it is cancelled while it waits for a connection, the driver can leave a shared lock
        locked. The driver's own timeouts end the work.
        """
        task = create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_retrieve_exception)
        await wait([task])
        return task.result()


def _retrieve_exception(task: Task[Any]) -> None:
    """Retrieve the exception of a task: its caller may be gone."""
    if not task.cancelled():
        task.exception()


def _make_client(url: str, timeout: float) -> AsyncMongoClient[dict[str, Any]]:
    """A client that is not connected yet."""
    milliseconds = max(1, int(timeout * 1000))
    try:
        if not url.startswith(("mongodb://", "mongodb+srv://")):
            raise ValueError("not a URL of MongoDB")
        return AsyncMongoClient(
            url,
            serverSelectionTimeoutMS=milliseconds,
            connectTimeoutMS=milliseconds,
            socketTimeoutMS=int(INDEX_TIMEOUT * 1000),
            uuidRepresentation="standard",
            tz_aware=True,
            datetime_conversion=DatetimeConversion.DATETIME_AUTO,
        )
    except (PyMongoError, ValueError):
        # The driver's message repeats parts of the URL, perhaps the password.
        raise UsageError(
            "Invalid URL of the documents. Use "
            "mongodb://USER:PASSWORD@HOST:27017/DATABASE, with '%40' for '@' in a password."
        ) from None


def _checked(name: str) -> str:
    """A name without characters that have a meaning in the server."""
    if "$" in name or not is_storable(name):
        raise InvalidName("names must not contain '$' or NUL")
    return name
