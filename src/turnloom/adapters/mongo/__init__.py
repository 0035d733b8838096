"""Documents in MongoDB. Needs the extra `mongo`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.mongo.documents import MongoDocuments
except ModuleNotFoundError as error:
    if error.name not in ("pymongo", "bson"):
        raise
    raise UsageError(
        "MongoDB needs the package 'pymongo', which is not installed. "
        'Install it with: pip install "turnloom[mongo]"'
    ) from error

__all__ = ["MongoDocuments"]
