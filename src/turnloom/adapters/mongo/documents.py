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
    """Where a server is, and the password that no message may hold."""

    place: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"MongoDB at {self.place}"

    def silent(self, lookup: Lookup, seconds: float) -> DocumentsUnavailable:
        """The error of a server that said nothing in time."""
        return DocumentsUnavailable(
            f"{self} did not answer within {seconds:g} s. Check that the server runs and is not "
            f"overloaded; an index on {lookup.key!r} in {lookup.collection!r} makes the lookup "
            "quick."
        )

    def unavailable(
        self, lookup: Lookup, error: PyMongoError, seconds: float
    ) -> DocumentsUnavailable:
        """The error as a sentence with a remedy."""
        reason = self._reason(error)
        if not reason:
            return self.silent(lookup, seconds)
        if isinstance(error, OperationFailure) and error.code in _FORBIDDEN:
            return DocumentsUnavailable(
                f"{self} refuses {lookup.collection!r}: {reason}. Check user and password in the "
                "URL of the documents, and what that user may read."
            )
        return DocumentsUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and that the URL of "
            "the documents is right."
        )

    def _reason(self, error: PyMongoError) -> str:
        """What the driver says is wrong, or nothing when all it knows is that time is up."""
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
    """Where a URL that the driver has accepted points to."""
    # The standard library takes several hosts in one URL for a broken address.
    scheme, _, rest = url.partition("://")
    login, _, hosts = rest.partition("/")[0].partition("?")[0].rpartition("@")
    default = "" if scheme == "mongodb+srv" else ":27017"
    places = [unquote(host) for host in hosts.split(",")]
    places = [place if ":" in place or place[:1] == "/" else place + default for place in places]
    return MongoServer(", ".join(places), unquote(login.partition(":")[2]))


# Seconds beyond the timeout until a server is given up that the driver itself still waits for.
GRACE = 0.5
# Seconds that the building of an index may take: it reads the whole collection.
BUILDING = 600.0

T = TypeVar("T")


class MongoDocuments:
    """Documents in the databases of one MongoDB."""

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._client = _make_client(url, timeout)
        self._server: MongoServer = locate(url)
        self._timeout = timeout
        self._closed = False
        self._tasks: set[Task[Any]] = set()

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The newest document that fits; none also where there is no such database or collection.

        Raises:
            DocumentsUnavailable: the server does not answer, in time or at all.
            UsageError: a name cannot be one, no database is named anywhere, or all is closed.
        """

        async def read() -> Mapping[str, Json] | None:
            with pymongo.timeout(self._timeout):
                return await reading.newest(collection, lookup)

        collection = self._collection(lookup)
        if not is_storable(lookup.value + lookup.tenant):
            return None
        return await self._run(read, lookup, self._timeout)

    async def index(self, lookup: Lookup) -> bool:
        """Index the key in its collection, if there is such a collection."""

        async def build() -> bool:
            with pymongo.timeout(self._timeout):
                present = await collection.database.list_collection_names()
            # To index a collection that is not there would make it.
            exists = lookup.collection in present
            if exists:
                await reading.index(collection, lookup)
            return exists

        collection = self._collection(lookup)
        return await self._run(build, lookup, BUILDING)

    async def aclose(self) -> None:
        """Close the connections and refuse everything from now on; again changes nothing."""
        self._closed = True
        with anyio.move_on_after(self._timeout + GRACE, shield=True):
            await self._apart(self._client.close())

    def _collection(self, lookup: Lookup) -> reading.Collection:
        if self._closed:
            raise UsageError("The documents are closed, so nothing can be looked up any more.")
        steps(lookup.key)
        try:
            return self._database(lookup.database)[_checked(lookup.collection)]
        except InvalidName as error:
            names = f"{lookup.database!r} and {lookup.collection!r}"
            raise UsageError(
                f"MongoDB can have no database and collection called {names}: {error}."
            ) from error

    def _database(self, name: str | None) -> AsyncDatabase[dict[str, Any]]:
        if name is not None:
            return self._client[_checked(name)]
        try:
            return self._client.get_default_database()
        except ConfigurationError as error:
            raise UsageError(
                "No database is named. Write `database_name`, or end the URL of the documents with "
                "one, as in mongodb://HOST:27017/DATABASE."
            ) from error

    async def _run(
        self, work: Callable[[], Coroutine[Any, Any, T]], lookup: Lookup, limit: float
    ) -> T:
        try:
            with anyio.fail_after(limit + GRACE):
                return await self._apart(work())
        except TimeoutError as error:
            raise self._server.silent(lookup, limit) from error
        except PyMongoError as error:
            raise self._server.unavailable(lookup, error, self._timeout) from error
        except (BSONError, LookupError, ValueError) as error:
            raise DocumentsUnavailable(
                f"What {self._server} gives for {lookup.collection!r} cannot be read: {error}. "
                "Check that it is a MongoDB, and repair the document."
            ) from error

    async def _apart(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of work that goes on when nobody waits for it any more.

        Cancelled while it waits for a connection, the driver can keep a lock that everybody needs.
        Its own timeouts end the work.
        """
        task = create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_hear)
        await wait([task])
        return task.result()


def _hear(task: Task[Any]) -> None:
    """Take note of how a task ended, for whoever asked may be gone."""
    if not task.cancelled():
        task.exception()


def _make_client(url: str, timeout: float) -> AsyncMongoClient[dict[str, Any]]:
    """A client that has not connected yet."""
    milliseconds = max(1, int(timeout * 1000))
    try:
        if not url.startswith(("mongodb://", "mongodb+srv://")):
            raise ValueError("no URL of MongoDB")
        return AsyncMongoClient(
            url,
            serverSelectionTimeoutMS=milliseconds,
            connectTimeoutMS=milliseconds,
            socketTimeoutMS=int(BUILDING * 1000),
            uuidRepresentation="standard",
            tz_aware=True,
            datetime_conversion=DatetimeConversion.DATETIME_AUTO,
        )
    except (PyMongoError, ValueError):
        # What the driver says about a URL repeats parts of it, the password perhaps.
        raise UsageError(
            "The URL of the documents cannot be read. It looks like "
            "mongodb://USER:PASSWORD@HOST:27017/DATABASE, with '%40' for '@' in a password."
        ) from None


def _checked(name: str) -> str:
    """A name that stands for itself and for nothing inside the server."""
    if "$" in name or not is_storable(name):
        raise InvalidName("a name holds no '$' and no NUL")
    return name
