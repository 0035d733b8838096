"""Ports of variables."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from turnloom.kernel.values import Json

# A document with one of these fields belongs to that tenant.
TENANT_FIELDS = ("app_id", "enterprise_id")


class Lookup(NamedTuple):
    """A lookup of the newest document of a tenant with a key and value."""

    database: str | None
    collection: str
    key: str
    value: str
    tenant: str


class DocumentStore(Protocol):
    """Documents in collections of a user's database; read-only."""

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The document last added to the collection with `key` equal to `value`, or None.

        A document with a tenant field is found only if that field equals the tenant.

        Raises:
            DocumentsUnavailable: the store failed or timed out.
        """
        ...

    async def index(self, lookup: Lookup) -> bool:
        """Create an index for such lookups.

        Returns whether the collection exists; it is not created.

        Raises:
            DocumentsUnavailable: the store failed or timed out.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class Environment(Protocol):
    """The environment of the process."""

    def get(self, name: str) -> str | None:
        """The value of an environment variable, or None if it is unset."""
        ...
