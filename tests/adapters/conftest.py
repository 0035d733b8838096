"""The servers that adapters are tested against."""

from tests.support.servers import mongo_server, mongo_url, postgres_server, postgres_url

__all__ = ["mongo_server", "mongo_url", "postgres_server", "postgres_url"]
