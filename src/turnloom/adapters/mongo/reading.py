"""Finding a document in a collection of MongoDB.

The filter narrows down; what it finds is checked once more as a JSON value, since to MongoDB an
array equals each thing in it. Only operators that mean the same in every server of its protocol are
used, and documents are read whole.
"""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from pymongo import ASCENDING, DESCENDING
from pymongo.asynchronous.collection import AsyncCollection

from turnloom.adapters.mongo.values import as_json
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import belongs, steps, value_at
from turnloom.variables.ports import TENANT_FIELDS, Lookup

NEWEST = [("_id", DESCENDING)]
# Documents that come with the first answer; the first of them nearly always fits.
BATCH = 2

Collection = AsyncCollection[dict[str, Any]]


async def newest(collection: Collection, lookup: Lookup) -> Mapping[str, Json] | None:
    """The newest document of a collection that fits."""
    names = steps(lookup.key)
    async with collection.find(condition(lookup), sort=NEWEST, batch_size=BATCH) as cursor:
        async for found in cursor:
            document = await to_thread.run_sync(as_json, found)
            if value_at(document, names) == lookup.value and belongs(
                document, TENANT_FIELDS, lookup.tenant
            ):
                return document
    return None


async def index(collection: Collection, lookup: Lookup) -> None:
    """Index the key of a collection, the newest document of each value coming first."""
    await collection.create_index([(lookup.key, ASCENDING), *NEWEST])


def condition(lookup: Lookup) -> dict[str, Any]:
    """What the server is asked to look for."""
    tenant = [
        {"$or": [{field: {"$exists": False}}, {field: lookup.tenant}]} for field in TENANT_FIELDS
    ]
    return {lookup.key: lookup.value, "$and": tenant}
