"""Where a MongoDB is, and what its errors mean to a person; never with the password."""

from dataclasses import dataclass, field
from urllib.parse import unquote

from pymongo.errors import OperationFailure, PyMongoError, ServerSelectionTimeoutError

from turnloom.errors import DocumentsUnavailable
from turnloom.variables.ports import Lookup

# Unauthorized, AuthenticationFailed.
_FORBIDDEN = (13, 18)


@dataclass(frozen=True, slots=True)
class Server:
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


def locate(url: str) -> Server:
    """Where a URL that the driver has accepted points to."""
    # The standard library takes several hosts in one URL for a broken address.
    scheme, _, rest = url.partition("://")
    login, _, hosts = rest.partition("/")[0].partition("?")[0].rpartition("@")
    default = "" if scheme == "mongodb+srv" else ":27017"
    places = [unquote(host) for host in hosts.split(",")]
    places = [place if ":" in place or place[:1] == "/" else place + default for place in places]
    return Server(", ".join(places), unquote(login.partition(":")[2]))
