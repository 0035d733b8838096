"""What variables need from the world."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from turnloom.kernel.values import Json

# A document that has one of these belongs to that tenant.
TENANT_FIELDS = ("app_id", "enterprise_id")


class Lookup(NamedTuple):
    """Which document a variable is read from: the newest with this value, of this tenant."""

    database: str | None
    collection: str
    key: str
    value: str
    tenant: str


class DocumentStore(Protocol):
    """Documents in collections, as people keep them in their database; read, never written."""

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The document last added to the collection whose `key` equals `value`, or none.

        A document with a tenant field is found only if that field equals the tenant.

        Raises:
            DocumentsUnavailable: the store does not answer, in time or at all.
        """
        ...

    async def index(self, lookup: Lookup) -> bool:
        """See to it that such a lookup costs the same in a large collection as in a small one.

        Gives whether there is such a collection; none is made.

        Raises:
            DocumentsUnavailable: the store does not answer, in time or at all.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class Environment(Protocol):
    """The environment of the process."""

    def get(self, name: str) -> str | None:
        """The value of an environment variable, or nothing when it is unset."""
        ...
