"""The servers that runs look documents up in, and processes that need no start."""

from tests.support.servers import mongo_server, mongo_url, postgres_server, postgres_url
from tests.support.warm import warm

__all__ = ["mongo_server", "mongo_url", "postgres_server", "postgres_url", "warm"]
