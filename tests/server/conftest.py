from tests.support.servers import own_server

__all__ = ["own_server"]
