from tests.support.servers import own_server, postgres_server, postgres_url

__all__ = ["own_server", "postgres_server", "postgres_url"]
