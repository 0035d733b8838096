"""The servers that runs look documents up in."""

from tests.support.servers import mongo_server, mongo_url, postgres_server, postgres_url

__all__ = ["mongo_server", "mongo_url", "postgres_server", "postgres_url"]
