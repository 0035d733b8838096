"""What the commands of a page run in, and servers for examples."""

from tests.support.servers import postgres_server, postgres_url
from tests.support.warm import warm

__all__ = ["postgres_server", "postgres_url", "warm"]
