"""Ports of variables."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from turnloom.kernel.values import Json

# A document with one of these fields belongs to that tenant.
TENANT_FIELDS = ("app_id", "enterprise_id")


Scalar = str | bool | int | float


class Lookup(NamedTuple):
    """A lookup of the newest document of a tenant with a key and value, and those of a filter."""

    database: str | None
    collection: str
    key: str
    value: Scalar
    tenant: str
    filter: tuple[tuple[str, Scalar], ...] = ()

    @property
    def conditions(self) -> tuple[tuple[str, Scalar], ...]:
        """Every key of the lookup with its value; a document must have all of them."""
        return ((self.key, self.value), *self.filter)

    @property
    def texts(self) -> str:
        """The texts that the store compares, one after the other."""
        values = [value for _, value in self.conditions if isinstance(value, str)]
        return "".join([*values, self.tenant])


class DocumentStore(Protocol):
    """Documents in collections of a user's database; read-only."""

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The document last added to the collection that meets every condition, or None.

        A value equals the same JSON value only: 5 equals 5.0, but neither "5" nor true equals 1.
        A document with a tenant field is found only if that field equals the tenant.

        Raises:
            DocumentsUnavailable: the store failed or timed out.
        """
        ...

    async def index(self, lookup: Lookup) -> bool:
        """Create an index on the key for such lookups.

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
