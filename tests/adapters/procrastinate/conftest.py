from tests.support.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
