"""Find documents in a MongoDB collection.

The filter narrows the candidates. Each is checked again as a JSON value, since an array matches
each of its elements in MongoDB. Only operators with the same meaning in all compatible servers are
used, and documents are read whole.
"""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from pymongo import ASCENDING, DESCENDING
from pymongo.asynchronous.collection import AsyncCollection

from turnloom.adapters.mongo.values import as_json
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import belongs, meets
from turnloom.variables.ports import TENANT_FIELDS, Lookup

NEWEST = [("_id", DESCENDING)]
# The size of the first batch; its first document nearly always matches.
BATCH = 2

Collection = AsyncCollection[dict[str, Any]]


async def newest(collection: Collection, lookup: Lookup) -> Mapping[str, Json] | None:
    """The newest matching document of a collection."""
    async with collection.find(condition(lookup), sort=NEWEST, batch_size=BATCH) as cursor:
        async for found in cursor:
            document = await to_thread.run_sync(as_json, found)
            if meets(document, lookup.conditions) and belongs(
                document, TENANT_FIELDS, lookup.tenant
            ):
                return document
    return None


async def index(collection: Collection, lookup: Lookup) -> None:
    """Create an index on the key, with the newest document of each value first."""
    await collection.create_index([(lookup.key, ASCENDING), *NEWEST])


def condition(lookup: Lookup) -> dict[str, Any]:
    """The filter for a lookup."""
    tenant = [
        {"$or": [{field: {"$exists": False}}, {field: lookup.tenant}]} for field in TENANT_FIELDS
    ]
    more = [{key: value} for key, value in lookup.filter]
    return {lookup.key: lookup.value, "$and": [*tenant, *more]}
